-- Slots of 8 bytes behind the cells, counted modulo cap from the byte base on. Those of buckets are loaded and written
-- back together with the cells; those of rings are read and written in place.

-- Ring slots that were read last: a few neighbours, from the byte near_from on.
local near_from, near = 0, ''
-- Whether a slot held what no call has written there.
local unsound
-- The slot that this call has written last: its byte and its value.
local filled, filled_value

-- Bytes of bucket slots that are yet to be written: where, and what. Most calls change one slot.
local edited, edit
-- Where the changes in fixed end.
local changed_to = 0

-- Finds the 8 bytes of the slot at a byte offset of the key's state. Returns a string that holds them and their position in
-- it, from 1 on. Slots of a fixed number come first and were read when the call began; a newer value may wait in edit. Those
-- of rings are read from Redis four slots at a time, and kept in near, because neighbours are usually read next.
local function find_bytes(offset)
  if offset < @{fixed} then
    if edited and offset >= edited and offset < edited + #edit then
      return edit, offset - edited + 1
    end
    return fixed, offset + 1
  end
  if offset < near_from or offset + 8 > near_from + #near then
    near_from, near = offset, call('GETRANGE', key, offset, offset + 31)
  end
  return near, offset - near_from + 1
end

-- Puts the bytes of the pending edit into fixed, this call's copy of the state, and notes in changed_to how far the copy
-- differs from what Redis holds. No edit is pending afterwards.
local function make_edit()
  local ends = edited + #edit
  fixed = sub(fixed, 1, edited) .. edit .. sub(fixed, ends + 1)
  changed_to = max(changed_to, ends)
  edited = nil
end

-- Writes slots at byte offset. Those of a fixed number are only noted as the latest edit, since all are written
-- together at the end; those of a ring are written at once.
local function write_bytes(offset, bytes)
  if offset < @{fixed} then
    if edited then
      make_edit()
    end
    edited, edit = offset, bytes
  else
    call('SETRANGE', key, offset, bytes)
  end
end

-- The bytes to write to Redis for the slots whose number is fixed: from the first slot to the last that this call changed, or
-- all of them if the key had no state before (there is false). A call that changed one place needs no new copy of the state.
local function changed_slots(there)
  if edited and there and changed_to == 0 then
    return sub(fixed, @{slots} + 1, edited) .. edit
  end
  if edited then
    make_edit()
  end
  return sub(fixed, @{slots} + 1, there and changed_to or @{fixed})
end

-- The value of one of cap slots of 8 bytes that begin at byte base; index counts modulo cap. A value that no call can have
-- written (negative, broken or too large) reads as 0, and sets unsound, so that the key's state is discarded after this call.
local function read_slot(base, cap, index)
  local offset = base + index % cap * 8
  if offset == filled then
    return filled_value
  end
  local value = unpack('<d', find_bytes(offset))
  if not (value >= 0 and value <= (offset < @{fixed} and EXACT or latest) and value % 1 == 0) then
    unsound, value = true, 0
  end
  return value
end

-- Writes value into n slots of a ring of cap slots, from number first on; slot 0 follows slot cap - 1. base is the byte at which the
-- ring begins. Where the charge may be undone, replaced is a table, and gets the place and the former bytes of each slot.
-- near holds slots that were read before; reading one slot puts filled_value in place of what near says of the slot filled. One
-- such slot can be noted, so near is emptied where more than one has changed.
local function fill_slots(base, cap, first, n, value)
  if n == 0 then
    return
  end
  local slot = first % cap
  if n > 1 or filled then
    near = ''
  end
  if replaced then
    for i = 0, n - 1 do
      local offset = base + (slot + i) % cap * 8
      local bytes, from = find_bytes(offset)
      replaced[#replaced + 1] = pack('<d', offset) .. sub(bytes, from, from + 7)
    end
  end
  filled, filled_value = base + (slot + n - 1) % cap * 8, value
  local bytes = pack('<d', value)
  while n > 0 do
    local run = min(n, cap - slot)
    write_bytes(base + slot * 8, run == 1 and bytes or rep(bytes, run))
    n, slot = n - run, 0
  end
end

-- Reads n slots of a ring of cap slots from Redis, from number first on, and returns their bytes as one string. Slots that
-- pass the end of the ring are at its start, and take a second read.
local function read_slots(base, cap, first, n)
  if n == 0 then
    return ''
  end
  local slot = first % cap
  local run = min(n, cap - slot)
  local bytes = call('GETRANGE', key, base + slot * 8, base + (slot + run) * 8 - 1)
  if run < n then
    bytes = bytes .. call('GETRANGE', key, base, base + (n - run) * 8 - 1)
  end
  return bytes
end

-- Copies n slots of a ring of cap slots, in their order, from number first on to number to on, and writes them to Redis. Where
-- they pass the end of the ring they go on at its start. Slots read before are forgotten, as their values may have moved.
local function move_slots(base, cap, first, n, to)
  local bytes = read_slots(base, cap, first, n)
  local slot = to % cap
  local run = min(n, cap - slot)
  call('SETRANGE', key, base + slot * 8, sub(bytes, 1, run * 8))
  if run < n then
    call('SETRANGE', key, base, sub(bytes, run * 8 + 1))
  end
  near, filled = '', nil
end
