-- Fixed window; twin of algorithms/fixed-window.ts.
-- cells: start, count
-- valid: start <= latest, start % window == 0
--   start  microseconds, start of the newest window that was booked
--   count  units booked in it

-- Returns the units that count at `instant`: count, the units used in the window that began at start, if that window still lasts
-- at `instant` or is a later one, in which units were booked; otherwise 0. Windows begin at multiples of `window`; all instants
-- are in microseconds.
local function fixed_window_count_at(start, count, window, instant)
  if instant - instant % window > start then
    return 0
  end
  return count
end

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit: `from`, or the start of the next
-- window; HUGE (never) for a cost above the limit. All algorithms have the same parameters; this one has no use for capacity,
-- ticks, tick and buckets.
local function fixed_window_earliest(start, count, limit, capacity, window, window_ticks, tick, buckets, from, cost)
  if cost > limit then
    return HUGE
  end
  if fixed_window_count_at(start, count, window, from) + cost <= limit then
    return from
  end
  return from - from % window + window
end

-- Charges cost units in the window of the instant `at`, whether they fit or not; a cost below 0 gives units back. A charge fills a
-- window to at most twice the limit, or leaves what was in it before if that is more, so that forced charges stay bounded. Only the
-- newest window is kept: a refund at an instant before that window, in which units were booked, changes nothing. Returns the cells
-- (start of the window, units in it) and how many units took effect.
local function fixed_window_admit(start, count, limit, capacity, window, window_ticks, tick, buckets, at, cost)
  local begins = at - at % window
  if begins < start then
    return start, count, 0 -- a refund behind a booked place: its window is not kept any more
  end
  local before = fixed_window_count_at(start, count, window, at)
  count = max(0, min(max(before, 2 * limit), before + cost))
  return begins, count, cost < 0 and before - count or count - before
end

-- Returns the units that could be spent at now, and the instant, in microseconds, at which the window of the used units ends,
-- which is now if none are used.
local function fixed_window_view(start, count, limit, capacity, window, window_ticks, tick, buckets, now)
  local used = fixed_window_count_at(start, count, window, now)
  if used == 0 then
    return limit, now
  end
  return limit - used, start + window
end

-- Decides a call of cost units at now in one pass. Returns whether they fit and, valid only if so: the cells start (of the
-- window) and count (the units in it) after the charge, the units that remain, and the end of the window. A window that began
-- later than start begins with a count of 0. The composer of scripts puts this body where it is called.
local function fixed_window_take(start, count, limit, capacity, window, window_ticks, tick, buckets, now, cost)
  local begins = now - now % window
  local units = (begins > start and 0 or count) + cost
  return units <= limit, begins, units, limit - units, begins + window
end

-- Gives back up to `units` units of a charge made at charged_at. Only the newest window is kept, so this changes nothing unless
-- the charge was made in that one and it still lasts at now: otherwise the units no longer count anyway. Returns the cells (start
-- of the window, units in it) and how many units were given back.
local function fixed_window_release(
  start, count, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  if charged_at - charged_at % window ~= start or now - now % window > start then
    return start, count, 0
  end
  local given = min(units, count)
  return start, count - given, given
end
