-- Calendar window; twin of algorithms/calendar-window.ts.
-- cells: start, ends, count
-- brings: before, opened, closes, after
-- valid: start <= ends, ends <= latest + 3 * window, ends <= start + 3 * window
--   start  microseconds, start of the newest window that was booked
--   ends   its end: the state stays in the window until then
--   count  units booked in it
-- Behind buckets its functions have the shortest period in microseconds and the four boundaries that the call has brought.

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit: `from`, or the end of the window
-- (ends) in which count units are used; HUGE (never) for a cost above the limit. All algorithms have the same parameters, and those of
-- calendars have also the boundaries around the call that the call has brought (before to after); this function needs few of them.
local function calendar_window_earliest(
  start, ends, count, limit, capacity, window, window_ticks, tick, buckets, shortest, before, opened, closes, after, from, cost
)
  if cost > limit then
    return HUGE
  end
  if from >= ends or count + cost <= limit then
    return from
  end
  return ends
end

-- Charges cost units in the window of the instant `at`, whether they fit or not. A cost below 0 takes units out if that is the kept
-- window, and otherwise does nothing. A charge fills a window to at most twice the limit, or leaves what was in it before if that is
-- more. After the kept window, each next window begins at the end of the one before, and ends at the first boundary that is at least
-- half a shortest period later; the first window of a new state begins at a boundary. The call has brought four boundaries, in order
-- of time: before, opened, closes and after; outside of them the engine has asked for others. Returns the cells (start and ends of the
-- window, count of its units) and how many units took effect.
local function calendar_window_admit(
  start, ends, count, limit, capacity, window, window_ticks, tick, buckets, shortest, before, opened, closes, after, at, cost
)
  if cost < 0 and (at < start or at >= ends) then
    return start, ends, count, 0
  end
  if at >= ends then
    count = 0
    if ends == 0 then
      ends = before
    end
    while at >= ends do
      local earliest_end = ends + shortest / 2
      start = max(0, ends) -- of a window that began before 1970
      -- The first boundary of those that the call brought, in order of time, that is late enough.
      ends = before >= earliest_end and before or opened >= earliest_end and opened
        or closes >= earliest_end and closes or after >= earliest_end and after or ends + window
    end
  end
  local kept = count
  count = max(0, min(max(kept, 2 * limit), kept + cost))
  return start, ends, count, cost < 0 and kept - count or count - kept
end

-- Returns the units that could be spent at now, and the instant, in microseconds, at which the window of the used units ends,
-- which is now if none are used.
local function calendar_window_view(
  start, ends, count, limit, capacity, window, window_ticks, tick, buckets, shortest, before, opened, closes, after, now
)
  if now >= ends or count == 0 then
    return limit, now
  end
  return limit - count, ends
end

-- Decides a call of cost units at now in one pass, as long as the kept window lasts. Returns whether they fit and, valid only if so: the
-- cells after the charge, the units that remain, and the end of the window. The composer of scripts puts this body where it is
-- called.
local function calendar_window_take(
  start, ends, count, limit, capacity, window, window_ticks, tick, buckets, shortest, before, opened, closes, after, now, cost
)
  local units = count + cost
  return now < ends and units <= limit, start, ends, units, limit - units, ends
end

-- Gives back up to `units` units of a charge made at charged_at, while the window lasts in which it was made. Returns the cells (start
-- and ends of the window, count of its units) and how many units were given back.
local function calendar_window_release(
  start, ends, count, limit, capacity, window, window_ticks, tick, buckets, shortest, before, opened, closes, after, now, charged_at,
  charged, units
)
  if charged_at < start or charged_at >= ends or now >= ends then
    return start, ends, count, 0
  end
  local given = min(units, count)
  return start, ends, count - given, given
end
