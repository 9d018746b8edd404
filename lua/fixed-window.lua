-- Fixed window; twin of algorithms/fixed-window.ts.
-- cells: start, count
-- valid: start <= latest, start % window == 0
--   start  microseconds, start of the newest window that was booked
--   count  units booked in it

local function fixed_window_count_at(start, count, window, instant)
  if instant - instant % window > start then
    return 0
  end
  return count
end

local function fixed_window_earliest(start, count, limit, capacity, window, ticks, tick, buckets, from, cost)
  if cost > limit then
    return HUGE
  end
  if fixed_window_count_at(start, count, window, from) + cost <= limit then
    return from
  end
  return from - from % window + window
end

local function fixed_window_admit(start, count, limit, capacity, window, ticks, tick, buckets, at, cost)
  local begins = at - at % window
  if begins < start then
    return start, count, 0 -- a refund behind a booked place: its window is not kept any more
  end
  local before = fixed_window_count_at(start, count, window, at)
  count = max(0, min(max(before, 2 * limit), before + cost))
  return begins, count, cost < 0 and before - count or count - before
end

local function fixed_window_view(start, count, limit, capacity, window, ticks, tick, buckets, now)
  local used = fixed_window_count_at(start, count, window, now)
  if used == 0 then
    return limit, now
  end
  return max(0, limit - used), start + window
end

-- The plain call: whether the cost fits at now, and what admit and view give then.
local function fixed_window_take(start, count, limit, capacity, window, ticks, tick, buckets, now, cost)
  local begins = now - now % window
  local units = (begins > start and 0 or count) + cost
  return units <= limit, begins, units, limit - units, begins + window
end

-- Its own window's units, while that window is the newest one and is not over.
local function fixed_window_release(
  start, count, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  if charged_at - charged_at % window ~= start or now - now % window > start then
    return start, count, 0
  end
  local given = min(units, count)
  return start, count - given, given
end
