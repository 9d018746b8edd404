-- Slots of 8 bytes behind the cells, counted modulo cap from the byte base on. Those of buckets are loaded and written
-- back together with the cells; those of rings are read and written in place.

-- Ring slots that were read last: a few neighbours, from the byte near_from on.
local near_from, near = 0, ''
-- Whether a slot held what no call has written there.
local unsound
-- The newest ring slot that this call has written: its byte and its value.
local filled, filled_value

-- The string that holds the slot at byte offset, and where in it.
local function find_bytes(offset)
  if offset < @{fixed} then
    return fixed, offset + 1
  end
  if offset < near_from or offset + 8 > near_from + #near then
    near_from, near = offset, call('GETRANGE', key, offset, offset + 31)
  end
  return near, offset - near_from + 1
end

local function write_bytes(offset, bytes)
  if offset < @{fixed} then
    fixed = sub(fixed, 1, offset) .. bytes .. sub(fixed, offset + #bytes + 1)
  else
    call('SETRANGE', key, offset, bytes)
  end
end

-- What cannot be in a slot counts for nothing, and the state is dropped after this call.
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

-- Writes value into the n slots from number first on.
local function fill_slots(base, cap, first, n, value)
  if n == 0 then
    return
  end
  local slot = first % cap
  if n > 1 or filled then
    near = '' -- otherwise all of it holds but the slot that is filled
  end
  if replaced then
    for i = 0, n - 1 do
      local offset = base + (slot + i) % cap * 8
      local bytes, from = find_bytes(offset)
      replaced[#replaced + 1] = pack('<d', offset) .. sub(bytes, from, from + 7)
    end
  end
  local bytes = pack('<d', value)
  local run = min(n, cap - slot)
  write_bytes(base + slot * 8, rep(bytes, run))
  if run < n then
    write_bytes(base, rep(bytes, n - run))
  end
  if base >= @{fixed} then
    filled, filled_value = base + (slot + n - 1) % cap * 8, value
  end
end
