-- Runs one operation on one key under a list of policies. lua/README.md is the contract: argument, state, reply.
-- Composed for each list of shapes: a line that begins with --@each is repeated for every policy, and words in
-- @{braces} are filled in.

local call, pcall = redis.call, redis.pcall
local pack, unpack = struct.pack, struct.unpack
local floor, ceil, max, min, rep, sub = math.floor, math.ceil, math.max, math.min, string.rep, string.sub
local HUGE, EXACT, FAR = math.huge, 9007199254740992, 1125899906842624
-- FAR: no instant is booked, held or blocked further ahead than 2^50 microseconds; state that says so is broken.
-- Operations and reasons, as the store numbers them.
local CONSUME, PEEK, BOOK, REFUND, CHARGE, BLOCK, HOLD, RESET, CONFIRM, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local LIMIT, COST, BLOCKED, HELD = 1, 2, 3, 4

local key = KEYS[1]
-- Header, cells and bucket slots as they were loaded. Slots of rings are read where they are needed.
local fixed
-- Bucket slots that this call has written, by offset.
local fresh
-- While a place is booked: offset and bytes of every slot that is written over.
local replaced

local function read_bytes(offset)
  if offset + 8 <= @{fixed} then
    return sub(fixed, offset + 1, offset + 8)
  end
  return call('GETRANGE', key, offset, offset + 7)
end

-- Slot number index modulo cap of the region that begins at byte base.
local function read_slot(base, cap, index)
  local offset = base + index % cap * 8
  local value = fresh and fresh[offset]
  if not value then
    value = unpack('<d', read_bytes(offset))
  end
  return value
end

-- Writes value into the n slots from number first on.
local function fill_slots(base, cap, first, n, value)
  local slot = first % cap
  if replaced then
    for i = 0, n - 1 do
      local offset = base + (slot + i) % cap * 8
      replaced[#replaced + 1] = pack('<d', offset) .. read_bytes(offset)
    end
  end
  local bytes = pack('<d', value)
  local run = min(n, cap - slot)
  if run > 0 then
    call('SETRANGE', key, base + slot * 8, rep(bytes, run))
  end
  if run < n then
    call('SETRANGE', key, base, rep(bytes, n - run))
  end
  if base < @{fixed} then
    fresh = fresh or {}
    fresh[base + slot * 8] = value
  end
end

-- Gives the ring at byte base wanted slots instead of cap, every entry before number head in its new place. The
-- string is set anew, because appending to it would make Redis reserve twice its length.
local function grow_slots(base, cap, wanted, head)
  local whole = call('GET', key)
  local entries, start = '', 0
  if cap > 0 then
    local ring, border = sub(whole, base + 1, base + cap * 8), head % cap * 8
    entries = sub(ring, border + 1) .. sub(ring, 1, border)
    start = (head - cap) % wanted * 8
  end
  local blank = rep('\0', wanted * 8 - #entries)
  local room = wanted * 8 - start
  local ring
  if #entries <= room then
    ring = sub(blank, 1, start) .. entries .. sub(blank, start + 1)
  else
    ring = sub(entries, room + 1) .. blank .. sub(entries, 1, room)
  end
  call('SET', key, sub(whole, 1, base) .. ring .. sub(whole, base + cap * 8 + 1), 'KEEPTTL')
end

@{modules}

local op, cost, span, clock, nonce, @{numbers}, rest = unpack('<ddddd@{number_formats}', ARGV[1])
if not (cost >= 0 and cost <= 2147483648 and cost % 1 == 0) then
  return redis.error_reply('ERR cost must be a whole number from 0 to 2^31')
end
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Load. What cannot be read is dropped, or the call would fail for ever.
fixed = pcall('GETRANGE', key, 0, @{fixed} - 1)
local exists = #fixed == @{fixed}
local broken = type(fixed) == 'table' or #fixed > 0 and not exists
if not exists then
  fixed = rep('\0', @{fixed})
end
local written, last, held, blocked, epoch, version, expires, @{cells} = unpack('<ddddddd@{cell_formats}', fixed)
if exists then
  broken = not (written >= 0 and written % 1 == 0 and last >= 0 and last % 1 == 0 and held >= 0 and blocked >= 0)
    or not (last <= written + FAR and held <= written + FAR and blocked <= written + FAR)
    or not (epoch >= 0 and version >= 0 and expires >= 0)
  --@each broken = broken or not ($sane)
  broken = broken or @{has_rings} and call('STRLEN', key) ~= @{length}
end
-- A clock that was set back: time stands still while it is behind by less than a window; by more, begin anew.
if not broken and written > now and written - now < @{longest} then
  now = written
end
if broken or written > now then
  call('DEL', key)
  exists, fixed = false, rep('\0', @{fixed})
  written, last, held, blocked, epoch, version, expires, @{cells} = unpack('<ddddddd@{cell_formats}', fixed)
end

local open = max(now, held, blocked)
local at, amount, reason, binding = open, 0, 0, 0
local writes = false
--@each local earliest_$i, remaining_$i, reset_$i = open, 0, now
if op == CONSUME or op == PEEK or op == BOOK then
  if cost > 0 then
    local from = max(open, last)
    at = from
    --@each earliest_$i = $f_earliest($state, $numbers, from, cost)
    --@each if earliest_$i > at then at, binding = earliest_$i, $i - 1 end
  end
  if at == HUGE then
    reason = COST
  elseif blocked > now then
    reason = BLOCKED
  elseif at > now + span then
    reason = held > now and HELD or LIMIT
  elseif cost > 0 and op ~= PEEK then
    writes, amount = true, cost
  end
elseif op == REFUND then
  writes, at, amount = exists, now, -cost
elseif op == CHARGE then
  writes, at, amount = true, max(now, last), cost
elseif op == BLOCK then
  writes, blocked = true, now + span
elseif op == HOLD then
  writes, held = true, max(held, now + span)
elseif op == RESET then
  call('DEL', key)
  return ''
else
  local booked_epoch, booked_version = unpack('<dd', ARGV[1], rest)
  local stands = exists and epoch == booked_epoch
  if op == CONFIRM then
    return pack('<d', stands and (open > now and HELD or 0) or LIMIT)
  end
  if not stands or version ~= booked_version then
    return pack('<d', 0)
  end
  -- Cancel: put back what the booking replaced. Slots may have grown in it, so a ring keeps its cap.
  local undo = sub(ARGV[1], rest + 16)
  --@ring local kept_$i = cap_$i
  last, @{cells} = unpack('<d@{cell_formats}', undo)
  --@ring cap_$i = kept_$i
  for i = 9 + @{cell_bytes}, #undo, 16 do
    call('SETRANGE', key, unpack('<d', undo, i), sub(undo, i + 8, i + 15))
  end
  version, writes = version - 1, true
end

local booking = ''
if writes then
  if not exists then
    epoch = nonce
    if @{has_slots} then
      call('SET', key, fixed, 'PX', 60000)
    end
  end
  if amount ~= 0 then
    version = version + 1
    if op == BOOK and at > now then
      booking = pack('<d@{cell_formats}', last, @{cells})
      replaced = {}
    end
    --@each $cells = $f_admit($state, $numbers, at, amount)
    if amount > 0 then
      last = at
    end
    if replaced then
      booking = pack('<dd', epoch, version) .. booking .. table.concat(replaced)
    end
  end
end

-- How the key stands. While it is barred or places ahead are booked nothing is left, and the first moment to tell of
-- is their end.
local remaining, reset = HUGE, open
if op ~= CANCEL then
  local seen = max(open, last)
  --@each remaining_$i, reset_$i = $f_view($state, $numbers, seen)
  --@each if seen > now then remaining_$i = 0 end
  --@each if remaining_$i < remaining and reason == 0 then binding = $i - 1 end remaining = min(remaining, remaining_$i)
  --@each reset = max(reset, reset_$i)
end

-- The key has to outlive the last moment that matters. Its time to live is set for a window more than that, and then
-- left alone until less is left than is needed.
if writes then
  written = now
  local needed = max(reset, last, held, blocked) + (clock < 0 and 1000000 or 3600000000)
  local ttl
  if needed > expires then
    expires = needed + @{longest}
    ttl = string.format('%.0f', ceil((expires - now) / 1000))
  end
  local bytes = pack('<ddddddd@{cell_formats}', written, last, held, blocked, epoch, version, expires, @{cells})
  if exists or @{has_slots} then
    call('SETRANGE', key, 0, bytes)
    if ttl then
      call('PEXPIRE', key, ttl)
    end
  else
    call('SET', key, bytes, 'PX', ttl)
  end
end
return pack('<ddddddd', broken and 1 or 0, now, at, reason, binding, remaining, reset)@{parts} .. booking
