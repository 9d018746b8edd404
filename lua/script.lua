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
-- The instant of all plain calls, and whether the calls of the last key were plain.
local shared_now, plain

if #KEYS == 1 then
  key, argument = KEYS[1], ARGV[1]
  fixed = @{load}
  if #argument == @{plain_bytes} then
    local cost, nonce, @{all_numbers} = unpack('<dd@{number_formats}', argument)
    @{hot_alone}
  end
end

@{modules}

@{alone_first}

local function decide(@{call})
  @{engine}
end

@{alone_last}

local states = @{load_all}
local keys, arguments, try = KEYS, ARGV, redis.pcall
local @{call}
-- Of the last argument: whether its calls may be plain, their instant, and how much longer their keys must live.
local may_be_plain, instant, margin
-- The instant and what the plain calls reply, with -1 for each key that has a reply of its own behind it.
local numbers, taken, replies = { 0 }, 1, {}
for i = 1, #keys do
  key, replaced, plain = keys[i], nil, nil
  if arguments[i] then
    argument = arguments[i]
    @{argument}
    may_be_plain = op == CONSUME and #argument < rest and count <= @{together} and cost > 0 and cost <= 2147483648 and cost % 1 == 0
    if may_be_plain and clock < 0 and not time then
      local parts = call('TIME')
      time = parts[1] * 1000000 + parts[2]
    end
    instant, margin = clock, 3600000000
    if clock < 0 then
      instant, margin = time, 1000000
    end
    may_be_plain = may_be_plain and instant == (shared_now or instant)
  end
  fixed = @{load_one}
  @{hot_together}
  if not plain then
    --@for any slotted near_from, near, unsound, filled = 0, '', nil, nil
    --@for any bucketed edited, changed_to = nil, 0
    local ran, reply = pcall(decide, @{call})
    if not ran or type(reply) == 'table' then
      @{failure}
    end
    taken, replies[#replies + 1] = taken + 1, reply
    numbers[taken] = -1
  end
end
numbers[1] = shared_now or 0
local packed = pack('<' .. string.rep('d', taken), (table.unpack or _G.unpack)(numbers, 1, taken))
table.insert(replies, 1, packed)
return replies
