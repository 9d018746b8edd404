-- What Redis runs: one operation on each key with its argument. lua/README.md is the contract.
-- A key that comes alone is decided right here, as a function would cost it more time than the decision does. Of several
-- keys, one that fails costs no other its answer.

local call, rescued = redis.call, redis.pcall
local pack, unpack = struct.pack, struct.unpack
local floor, ceil, max, min, rep, sub = math.floor, math.ceil, math.max, math.min, string.rep, string.sub

local key, argument
-- Header, cells and bucket slots. Slots of rings are read where they are needed.
local fixed
-- The latest instant that the state knows: when it was written, or of the last place in it.
local latest
-- While a place is booked: offset and bytes of every slot that is written over.
local replaced
-- What TIME says, in microseconds. It may move within a script, so it is read once.
local time

@{modules}

if #KEYS == 1 then
  key, argument = KEYS[1], ARGV[1]
  @{engine}
end

local function decide()
  @{engine}
end

-- Keys beyond the last argument share it.
local replies = {}
for i = 1, #KEYS do
  key, argument, replaced = KEYS[i], ARGV[i] or argument, nil
  --@slots near_from, near, unsound, filled = 0, '', nil, nil
  local ran, reply = pcall(decide)
  if not ran or type(reply) == 'table' then
    local message = type(reply) == 'table' and reply.err or reply
    if string.find(message, 'READONLY', 1, true) then
      return redis.error_reply(message) -- so it is for every key, and clients look for another server
    end
    reply = '!' .. message
  end
  replies[i] = reply
end
return replies
