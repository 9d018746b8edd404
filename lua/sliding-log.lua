-- Sliding log; twin of algorithms/sliding-log.ts. Instants lie in a ring of slots, one a unit, 8 bytes each: entry
-- number i in slot i mod cap. Numbers only grow; what was dropped stays until it is written over.
-- cells: head, size, cap
-- slots: cap
--   head  number of the next entry
--   size  entries that count, the newest ones
--   cap   slots there are; doubled when full, up to the limit

local function sliding_log_at(head, size, cap, base, i)
  if i >= size then
    return -HUGE
  end
  return read_slot(base, cap, head - 1 - i)
end

-- How many entries are later than instant. Few leave between two calls, so a few of the oldest are read together
-- first; only when all of those have left is the border searched by halves.
local function sliding_log_newer_than(head, size, cap, base, instant)
  if size == 0 or sliding_log_at(head, size, cap, base, size - 1) > instant then
    return size
  end
  local least, most = 0, size - 1
  local near = max(0, size - 4)
  if sliding_log_at(head, size, cap, base, near) > instant then
    least = near + 1
  else
    most = near
  end
  while least < most do
    local middle = floor((least + most) / 2)
    if sliding_log_at(head, size, cap, base, middle) > instant then
      least = middle + 1
    else
      most = middle
    end
  end
  return least
end

local function sliding_log_earliest(
  head, size, cap, base, limit, capacity, window, ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  return max(from, sliding_log_at(head, size, cap, base, limit - cost) + window)
end

-- Drops the newest entries at or before at; places booked beyond it stay.
local function sliding_log_give_back(head, size, cap, base, at, cost)
  local booked = sliding_log_newer_than(head, size, cap, base, at)
  local dropped = min(cost, size - booked)
  if dropped == 0 then
    return head, size, cap
  end
  for i = booked, 1, -1 do
    fill_slots(base, cap, head - i - dropped, 1, read_slot(base, cap, head - i))
  end
  return head - dropped, size - dropped, cap
end

local function sliding_log_admit(
  head, size, cap, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  if cost < 0 then
    return sliding_log_give_back(head, size, cap, base, at, -cost)
  end
  local live = sliding_log_newer_than(head, size, cap, base, at - window)
  local pushed = min(cost, max(0, 2 * limit - live))
  if live + pushed > cap then
    local wanted = max(live + pushed, min(limit, max(4, 2 * cap)))
    grow_slots(base, cap, wanted, head)
    cap = wanted
  end
  fill_slots(base, cap, head, pushed, at)
  return head + pushed, live + pushed, cap
end

local function sliding_log_view(head, size, cap, base, limit, capacity, window, ticks, tick, buckets, now)
  local live = sliding_log_newer_than(head, size, cap, base, now - window)
  if live == 0 then
    return limit, now
  end
  return max(0, limit - live), read_slot(base, cap, head - 1) + window
end
