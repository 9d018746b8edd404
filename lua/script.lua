-- The script that Redis runs: one operation on each key with its argument. lua/README.md is the contract.
-- Keys beyond the last argument share it. A single key under few policies is decided without a function, as making one
-- would take longer than the decision; many policies have more variables than Lua allows in one place. If one of several
-- keys fails, the others are still answered.

local call = redis.call
local pack, unpack = struct.pack, struct.unpack
--@for any slotted local rep, sub = string.rep, string.sub

local key, argument
-- Header, cells and bucket slots, as they were read. Slots of rings are read where they are needed.
local fixed
-- The latest instant in the state: that of its last write, or of its last booking.
local latest
-- During a booking: offset and bytes of every slot that is overwritten.
local replaced
-- The result of TIME, in microseconds. It may change within a script, so it is read once.
local time
-- The reply to a plain call; nil for any other call.
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
    --@for any slotted near_from, near, unsound, filled = 0, '', nil, nil
    --@for any bucketed edited, changed_to = nil, 0
    local ran, reply = pcall(decide, @{call})
    if not ran or type(reply) == 'table' then
      local message = type(reply) == 'table' and reply.err or reply
      if string.find(message, 'READONLY', 1, true) then
        -- True of every key of the call, and the error by which clients look for another server.
        return redis.error_reply(message)
      end
      -- Redis 6.2 puts the line of the script before the message.
      reply = '!' .. string.gsub(message, '^@user_script: %d+: %-?', '')
    end
    plain = reply
  end
  replies[i] = plain
end
return replies
