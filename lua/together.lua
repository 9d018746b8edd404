-- The script for calls on several keys: each whole charges all of its keys, or none. lua/README.md has the argument and the
-- reply. Wholes are decided one after the other; those beyond the last argument share it.

local keys, call, try = KEYS, redis.call, redis.pcall
local pack, unpack, sub, spread = struct.pack, struct.unpack, string.sub, table.unpack or _G.unpack
-- The instant of the wholes that are decided now, how much longer their keys must live, and the result of TIME.
local time, margin, redis_time
-- The instant and what plain wholes reply, with -1 for each that has a reply of its own; kept counts those of one whole.
local numbers, taken, kept, replies = { 0 }, 1, 1, {}
-- By number: the functions for each list of policies.
local lists = {}
@{lists}

-- The last argument, how many parts it has, and their functions and numbers as plain calls.
local argument, count, plain, plain_numbers, are_plain, clock
-- The same parts as the engine takes them, once it is asked.
local parts

local function read_argument()
  local at, number, size, slowest, _
  clock, count, at = unpack('<dd', argument)
  plain, plain_numbers, are_plain, parts = {}, {}, true, nil
  for i = 1, count do
    number, _, size, slowest, at = unpack('<dddd', argument, at)
    local list = lists[number]
    plain[i], plain_numbers[i] = list.plain, { unpack(list.format, argument, at) }
    are_plain = are_plain and list.plain and slowest == 0 and plain_numbers[i][1] > 0
    at = at + size + slowest
  end
  time, margin = clock, 3600000000
  if clock < 0 then
    if not redis_time then
      local now = call('TIME')
      redis_time = now[1] * 1000000 + now[2]
    end
    time, margin = redis_time, 1000000
  end
end

local function read_parts()
  if parts then
    return
  end
  local at, number, enforced, size, slowest = 17, nil, nil, nil, nil
  parts = {}
  for i = 1, count do
    number, enforced, size, slowest, at = unpack('<dddd', argument, at)
    local last = at + size + slowest
    parts[i] = {
      run = lists[number].run,
      enforced = enforced == 1,
      argument = sub(argument, at, at + size - 1),
      slowest = sub(argument, at + size, last - 1),
    }
    at = last
  end
end

-- Runs an operation of the engine on a part. The other numbers of its argument are those of the plain call.
local function run(part, key, op, span, rest)
  local reply = part.run(key, part.argument .. pack('<dddd', op, 1, clock, span) .. rest)
  if type(reply) == 'table' then
    error(reply.err, 0)
  end
  return reply
end

-- Any whole: all parts are tried, then all are charged. A failure undoes what was charged before it.
local function decide(first)
  local answers, undo, denied = {}, {}, {}
  local is_denied = false
  read_parts()
  for i, part in ipairs(parts) do
    answers[i] = run(part, keys[first + i], TRY, 0, part.slowest)
    local flags, _, _, reason = unpack('<dddd', answers[i])
    denied[i] = flags >= 2 and reason ~= 0
    is_denied = is_denied or denied[i] and part.enforced
  end
  for i, part in ipairs(parts) do
    if not is_denied and not denied[i] then
      local ran, reply = pcall(run, part, keys[first + i], RESERVE, 0, part.slowest)
      if not ran then
        for j, token in pairs(undo) do
          pcall(run, parts[j], keys[first + j], CANCEL, time, token)
        end
        error(reply, 0)
      end
      -- The reply to a call that passes is as long as its plain argument.
      answers[i], undo[i] = sub(reply, 1, #part.argument), sub(reply, #part.argument + 1)
    end
  end
  for i, answer in ipairs(answers) do
    answers[i] = pack('<d', #answer) .. answer
  end
  return table.concat(answers)
end

local states = @{states}
-- Keys that were written since their states were read.
local stale = {}
-- Of the parts of one whole: the bytes to write and where, the lengths of the states, and slots of rings with their bytes.
local bytes, offsets, lengths, slots, entries = {}, {}, {}, {}, {}

-- Decides a plain whole, and writes it. Returns false, with nothing written, where it is not plain, and the error of a server
-- that refuses to write.
local function decide_plain(first)
  kept = taken
  for i = 1, count do
    local key = keys[first + i]
    local state = states and not stale[key] and (states[first + i] or '') or nil
    bytes[i], offsets[i], lengths[i], slots[i], entries[i] = plain[i](key, state, time, spread(plain_numbers[i]))
    if not bytes[i] then
      return false
    end
  end
  for i = 1, count do
    local key = keys[first + i]
    -- If the server takes the first, it takes them all.
    local size = try('SETRANGE', key, offsets[i], bytes[i])
    if type(size) == 'table' then
      return size
    end
    if slots[i] and (size == lengths[i] or size == lengths[i] + 16) then
      call('SETRANGE', key, slots[i], entries[i])
    elseif slots[i] then
      read_parts()
      run(parts[i], key, CONSUME, 0, '')
    end
    if states then
      stale[key] = true
    end
  end
  numbers[1], taken = time, kept
  return true
end

local next_key, whole = 0, 0
while next_key < #keys do
  whole = whole + 1
  if ARGV[whole] then
    argument = ARGV[whole]
    read_argument()
  end
  local reply = are_plain and (numbers[1] == 0 or numbers[1] == time) and decide_plain(next_key)
  if reply ~= true then
    local ran = not reply
    if ran then
      ran, reply = pcall(decide, next_key)
    end
    if not ran then
      @{failure}
    end
    taken, replies[#replies + 1] = taken + 1, reply
    numbers[taken] = -1
    for i = 1, count do
      stale[keys[next_key + i]] = true
    end
  end
  next_key = next_key + count
end
local packed = pack('<' .. string.rep('d', taken), spread(numbers, 1, taken))
table.insert(replies, 1, packed)
return replies
