-- The script that Redis runs: one operation on each key with its argument. lua/README.md is the contract.
-- Keys beyond the last argument share it. Plain calls are decided before any function is made, as making one would take
-- longer than the decision. All others come after them, in order; no key comes twice, so none of them has to see what
-- another wrote. A call that travels alone under few policies needs no function either; many policies have more variables
-- than Lua allows in one place. If one of several keys fails, the others are still answered.

local call, try = redis.call, redis.pcall
local pack, unpack = struct.pack, struct.unpack
--@for any slotted local rep, sub = string.rep, string.sub

local key, argument
-- Header, cells and bucket slots, as they were read. Slots of rings are read where they are needed.
local fixed
-- The latest instant in the state: that of its last write, or of its last booking.
local latest
-- During a booking: offset and bytes of every slot that is overwritten.
local replaced
-- The state of a key that reserves with what a decision has given back, until that is written or dropped.
--@reserving local copy
-- The result of TIME, in microseconds. It may change within a script, so it is read once.
local time
-- Whether this is one call. Equal calls on one key travel as those on several keys do.
local alone = #KEYS == 1
-- Of calls that travel together: the states of their keys, the places of those whose calls are not plain, the reply, and the keys
-- that are reset.
local states, others, replies, dropped

if alone then
  key, argument = KEYS[1], ARGV[1]
  if @{is_plain} then
    fixed = @{load}
    local cost, nonce, @{all_numbers} = unpack('<dd@{number_formats}', argument)
    @{hot_alone}
  else
    local op, count, clock = unpack('<ddd', argument, @{plain_bytes} + 1)
    alone = count == 1 and (clock < 0 or op ~= CONSUME)
    fixed = alone and @{load}
  end
end

if not alone then
  local keys, arguments, spread = KEYS, ARGV, table.unpack or _G.unpack
  states, others = @{load_all}, {}
  local @{call}
  -- Of the last argument: whether its calls may be plain, their instant, and how much longer their keys must live.
  local may_be_plain, instant, margin
  -- The instant of all plain calls, and whether the calls of the last key were plain.
  local shared_now, plain
  -- The instant and what the plain calls reply, with -1 for each key that has a reply of its own behind it.
  local numbers, taken = { 0 }, 1
  for i = 1, #keys do
    key, plain = keys[i], nil
    if arguments[i] then
      argument = arguments[i]
      @{argument}
      may_be_plain = @{may_be_plain} and count <= @{together} and cost > 0 and cost <= 2147483648 and cost % 1 == 0
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
      taken, others[#others + 1], states[i] = taken + 1, i, fixed
      numbers[taken] = -1
    end
  end
  numbers[1] = shared_now or 0
  replies = { (pack('<' .. string.rep('d', taken), spread(numbers, 1, taken))) }
  if #others == 0 then
    return replies
  end
end

@{modules}

@{alone_first}

-- Runs the operation of one call on `key`, whose state is in `fixed`. Takes the numbers of its argument, and returns the packed
-- reply or, if the server refuses a command, its error as a table.
local function decide(@{call})
  @{engine}
end

@{alone_last}

local @{call}
argument = nil
for _, i in ipairs(others) do
  key, fixed, replaced = KEYS[i], states[i], nil
  local own = ARGV[i] or ARGV[#ARGV]
  if argument ~= own then
    argument = own
    @{argument}
  end
  --@for any slotted near_from, near, unsound, filled = 0, '', nil, nil
  --@for any bucketed edit_offset, changed_to = nil, 0
  local ran, reply = pcall(decide, @{call})
  --@reserving call = redis.call
  if not ran or type(reply) == 'table' then
    @{failure}
  end
  replies[#replies + 1] = reply
end
-- Last, as a server without memory takes all that is written after a deletion.
for _, reset_key in ipairs(dropped or {}) do
  call('DEL', reset_key)
end
return replies
