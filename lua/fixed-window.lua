-- Fixed window; twin of algorithms/fixed-window.ts.
-- cells: start, count
-- valid: start <= latest, start % window == 0
--   start  microseconds, start of the newest window that was booked
--   count  units booked in it

-- Returns the units that count at instant: count if the window that began at start still lasts, else 0. Windows begin at
-- multiples of window, in microseconds.
local function fixed_window_count_at(start, count, window, instant)
  if instant - instant % window > start then
    return 0
  end
  return count
end

-- Returns the earliest instant from `from` on at which cost units fit: `from` itself, the start of the next window, or HUGE,
-- never, for a cost above the limit.
local function fixed_window_earliest(start, count, limit, capacity, window, ticks, tick, buckets, from, cost)
  if cost > limit then
    return HUGE
  end
  if fixed_window_count_at(start, count, window, from) + cost <= limit then
    return from
  end
  return from - from % window + window
end

-- Charges cost units in the window of the instant at; a cost below 0 gives units back. A charge leaves at most twice the limit
-- in a window, or what was in it before. Returns the cells (start of the window, units in it) and how many units took effect.
local function fixed_window_admit(start, count, limit, capacity, window, ticks, tick, buckets, at, cost)
  local begins = at - at % window
  if begins < start then
    return start, count, 0 -- a refund behind a booked place: its window is not kept any more
  end
  local before = fixed_window_count_at(start, count, window, at)
  count = max(0, min(max(before, 2 * limit), before + cost))
  return begins, count, cost < 0 and before - count or count - before
end

-- Returns the units that could be spent at now, and the instant at which the window ends, which is now if nothing is used.
local function fixed_window_view(start, count, limit, capacity, window, ticks, tick, buckets, now)
  local used = fixed_window_count_at(start, count, window, now)
  if used == 0 then
    return limit, now
  end
  return max(0, limit - used), start + window
end

-- Decides a call at now in one pass. Returns whether cost fits and, valid only if it does: the cells start and count after the
-- charge, the units that remain, and the end of the window. The composer of scripts puts this body where it is called.
local function fixed_window_take(start, count, limit, capacity, window, ticks, tick, buckets, now, cost)
  local begins = now - now % window
  local units = (begins > start and 0 or count) + cost
  return units <= limit, begins, units, limit - units, begins + window
end

-- Gives back units of a charge made at charged_at, if the state still holds that window and it has not ended. Returns
-- the cells and how many units took effect.
local function fixed_window_release(
  start, count, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  if charged_at - charged_at % window ~= start or now - now % window > start then
    return start, count, 0
  end
  local given = min(units, count)
  return start, count - given, given
end
