-- What Redis runs: one operation on each key with its argument. lua/README.md is the contract.
-- Keys beyond the last argument share it. A key that comes alone is decided right here under few policies, as a function
-- would cost it more time than the decision does; under many, Lua has not room enough for their variables here. Of several keys, one that fails costs no other its answer.

local call = redis.call
local pack, unpack = struct.pack, struct.unpack
--@slots local rep, sub = string.rep, string.sub

local key, argument
-- Header, cells and bucket slots, as they were read. Slots of rings are read where they are needed.
local fixed
-- The latest instant that the state knows: when it was written, or of the last place in it.
local latest
-- While a place is booked: offset and bytes of every slot that is written over.
local replaced
-- What TIME says, in microseconds. It may move within a script, so it is read once.
local time
-- What a plain call is answered with; nil for any other.
local plain

if #KEYS == 1 then
  key, argument = KEYS[1], ARGV[1]
  fixed = @{load}
  local @{call}
  @{argument}
  @{hot}
  if plain then
    return plain
  end
end

@{modules}

@{alone_first}

local function decide(@{call})
  @{engine}
end

@{alone_last}

local states = @{load_all}
local @{call}
local replies = {}
for i = 1, #KEYS do
  key, replaced, plain = KEYS[i], nil, nil
  if ARGV[i] then
    argument = ARGV[i]
    @{argument}
  end
  fixed = @{load_one}
  @{hot}
  if not plain then
    --@slots near_from, near, unsound, filled = 0, '', nil, nil
    --@buckets edited, changed_to = nil, 0
    local ran, reply = pcall(decide, @{call})
    if not ran or type(reply) == 'table' then
      local message = type(reply) == 'table' and reply.err or reply
      if string.find(message, 'READONLY', 1, true) then
        return redis.error_reply(message) -- so it is for every key, and clients look for another server
      end
      reply = '!' .. string.gsub(message, '^@user_script: %d+: %-?', '') -- Redis 6.2 says where
    end
    plain = reply
  end
  replies[i] = plain
end
return replies
