-- Wide window; twin of algorithms/wide-window.ts.
-- cells: start, count
-- valid: start <= latest, start % (window * 2) == 0
-- valid of wide-window-triple: start <= latest, start % (window * 3) == 0
--   start  microseconds, start of the newest windows that were counted together
--   count  units booked in them

local function wide_window_count_at(start, count, length, instant)
  if instant - instant % length > start then
    return 0
  end
  return count
end

local function wide_window_earliest_in(start, count, limit, length, from, cost)
  if cost > limit then
    return HUGE
  end
  if wide_window_count_at(start, count, length, from) + cost <= limit then
    return from
  end
  return from - from % length + length
end

local function wide_window_admit_in(start, count, limit, length, at, cost)
  local begins = at - at % length
  if begins < start then
    return start, count, 0
  end
  local before = wide_window_count_at(start, count, length, at)
  count = max(0, min(max(before, 2 * limit), before + cost))
  return begins, count, cost < 0 and before - count or count - before
end

local function wide_window_view_in(start, count, limit, length, now)
  local used = wide_window_count_at(start, count, length, now)
  if used == 0 then
    return limit, now
  end
  return limit - used, start + length
end

local function wide_window_release_in(start, count, length, now, charged_at, units)
  if charged_at - charged_at % length ~= start or now - now % length > start then
    return start, count, 0
  end
  local given = min(units, count)
  return start, count - given, given
end

local function wide_window_earliest(start, count, limit, capacity, window, ticks, tick, buckets, from, cost)
  return wide_window_earliest_in(start, count, limit, window * 2, from, cost)
end

local function wide_window_admit(start, count, limit, capacity, window, ticks, tick, buckets, at, cost)
  return wide_window_admit_in(start, count, limit, window * 2, at, cost)
end

local function wide_window_view(start, count, limit, capacity, window, ticks, tick, buckets, now)
  return wide_window_view_in(start, count, limit, window * 2, now)
end

local function wide_window_release(
  start, count, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  return wide_window_release_in(start, count, window * 2, now, charged_at, units)
end

local function wide_window_triple_earliest(start, count, limit, capacity, window, ticks, tick, buckets, from, cost)
  return wide_window_earliest_in(start, count, limit, window * 3, from, cost)
end

local function wide_window_triple_admit(start, count, limit, capacity, window, ticks, tick, buckets, at, cost)
  return wide_window_admit_in(start, count, limit, window * 3, at, cost)
end

local function wide_window_triple_view(start, count, limit, capacity, window, ticks, tick, buckets, now)
  return wide_window_view_in(start, count, limit, window * 3, now)
end

local function wide_window_triple_release(
  start, count, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  return wide_window_release_in(start, count, window * 3, now, charged_at, units)
end
