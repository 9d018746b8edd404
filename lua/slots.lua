-- Slots of 8 bytes behind the cells, counted modulo cap from the byte base on. Those of buckets are loaded and written
-- back together with the cells; those of rings are read and written in place.

-- Ring slots that were read last: a few neighbours, from the byte near_from on.
local near_from, near = 0, ''
-- Whether a slot held what no call has written there.
local unsound
-- The slot that this call has written last: its byte and its value.
local filled, filled_value

-- Bytes of bucket slots that are yet to be written: where, and what. Most calls change one slot.
local edit_offset, edit_bytes
-- Where the changes in fixed end.
local changed_to = 0

-- Finds the 8 bytes of the slot (a number that is addressed by its position) at a byte offset of the key's state. Returns a
-- string that holds them and their place in it, from 1. The first @{fixed} bytes of the state were read into `fixed` when the call
-- began; the latest change to them, `edit_bytes` at `edit_offset`, is not yet put into `fixed`. The slots of logs lie behind these
-- bytes and are too many to read: Redis is asked for four at a time, kept in `near`, as neighbours are usually wanted next.
local function find_bytes(offset)
  if offset < @{fixed} then
    if edit_offset and offset >= edit_offset and offset < edit_offset + #edit_bytes then
      return edit_bytes, offset - edit_offset + 1
    end
    return fixed, offset + 1
  end
  if offset < near_from or offset + 8 > near_from + #near then
    near_from, near = offset, call('GETRANGE', key, offset, offset + 31)
  end
  return near, offset - near_from + 1
end

-- Puts the pending change (`edit_bytes` at the byte `edit_offset`) into `fixed`, this call's copy of the key's state. A change is
-- at first only noted, because a string of Lua cannot be changed in place: each change put into it makes a new copy, which most
-- calls can do without, as they make one change. So this is called before a second change is noted, or where the whole copy is to
-- be written. changed_to is the byte up to which the copy differs from what Redis holds. No change is pending afterwards.
local function make_edit()
  local ends = edit_offset + #edit_bytes
  fixed = sub(fixed, 1, edit_offset) .. edit_bytes .. sub(fixed, ends + 1)
  changed_to = max(changed_to, ends)
  edit_offset = nil
end

-- Writes the bytes of one or more slots at a byte offset of the state. The first @{fixed} bytes of the state, of which this call has
-- a copy (`fixed`), go to Redis in one piece when the call ends. A change to them is only noted, by its offset and its bytes
-- (`edit_offset`, `edit_bytes`): most calls make one change, for which the copy need not be made anew. If a change is noted
-- already, make_edit puts it into the copy first. Bytes behind these belong to logs and are written to Redis at once.
local function write_bytes(offset, bytes)
  if offset < @{fixed} then
    if edit_offset then
      make_edit()
    end
    edit_offset, edit_bytes = offset, bytes
  else
    call('SETRANGE', key, offset, bytes)
  end
end

-- Returns the bytes to write to Redis for the slots that were read with the state: from the first slot to the last one that this
-- call changed, or all of them if the key had no state before (`there` is false). A call that made one change needs no new copy of
-- the state: the bytes before the change and those of the change are enough.
local function changed_slots(there)
  if edit_offset and there and changed_to == 0 then
    return sub(fixed, @{slots} + 1, edit_offset) .. edit_bytes
  end
  if edit_offset then
    make_edit()
  end
  return sub(fixed, @{slots} + 1, there and changed_to or @{fixed})
end

-- Returns the value of one slot (8 bytes) out of cap slots that begin at byte base of the state; index counts modulo cap. The
-- slot that this call wrote last is known without reading. A value that no call can have written (negative, broken or too large;
-- an instant later than the latest of the state) reads as 0 and sets `unsound`, so that the key's state is discarded after this
-- call.
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

-- Writes value into n of cap slots that begin at byte base of the state and are used in turn, from number first on: slot 0
-- follows slot cap - 1. Where the charge may have to be undone, `replaced` is a list, to which the place and the former bytes of
-- each slot are added. `near` holds bytes of slots as they were read before. One slot written since is known by `filled` and its
-- value; where more have changed, near is emptied, so that they are read again.
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
    near = ''
  end
  filled, filled_value = base + (slot + n - 1) % cap * 8, value
  local bytes = pack('<d', value)
  while n > 0 do
    local up_to_the_last = min(n, cap - slot)
    write_bytes(base + slot * 8, up_to_the_last == 1 and bytes or rep(bytes, up_to_the_last))
    n, slot = n - up_to_the_last, 0
  end
end

-- Returns the bytes of n slots of a ring, cap slots of 8 bytes that are used in turn, from number first on, as one string read
-- from Redis. The ring begins at byte base of the state. Slots that pass its end are at its start, and take a second read.
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

-- Writes bytes, which are those of some slots of a ring, into its cap slots of 8 bytes from number first on, in Redis. The ring begins
-- at byte base of the state; slots that would pass its end go on at its start. What this call remembers of slots it has read or
-- written (`near`, `filled`) is forgotten, as their values may have moved.
local function write_slots(base, cap, first, bytes)
  local slot = first % cap
  local run = min(#bytes, (cap - slot) * 8)
  if run > 0 then
    call('SETRANGE', key, base + slot * 8, sub(bytes, 1, run))
  end
  if run < #bytes then
    call('SETRANGE', key, base, sub(bytes, run + 1))
  end
  near, filled = '', nil
end
