-- Sliding window over N buckets; twin of algorithms/sliding-window.ts. Bucket number b is counted in slot
-- b mod N+1.
-- needs: slots
-- cells: newest, total
-- slots: buckets + 1
-- valid: newest * window <= latest * buckets
--   newest  number of the newest bucket that was booked
--   total   units in the N+1 buckets that end with it

-- Returns the units in bucket number `bucket`. A bucket is one of N equal parts of the window, where N is `buckets`, and is
-- numbered from instant 0 of the clock. Only N+1 are kept, up to number newest, in N+1 slots that are used in turn: so an older
-- or a later one counts 0. base is the byte at which the slots begin in the state.
local function sliding_window_count_of(newest, base, buckets, bucket)
  if bucket > newest or bucket < newest - buckets then
    return 0
  end
  return read_slot(base, buckets + 1, bucket)
end

-- Returns the units in the N+1 buckets that end with number `bucket`, where N is `buckets`, the parts of a window: N+1 buckets
-- touch the window that ends inside the last one. total is that sum up to the newest bucket, so the buckets that have left since
-- are subtracted. Once even the newest has left, the result is 0.
local function sliding_window_total_at(newest, total, base, buckets, bucket)
  if total == 0 or bucket - buckets > newest then
    return 0
  end
  for b = newest - buckets, bucket - buckets - 1 do
    total = total - read_slot(base, buckets + 1, b)
  end
  return total
end

-- Returns the instant at which the newest bucket that has units leaves the window, so that nothing counts any more; the start of
-- the newest bucket if all are empty. width is the length of a bucket, one of `buckets` parts of the window; both in
-- microseconds.
local function sliding_window_empty_at(newest, base, width, buckets)
  for bucket = newest, newest - buckets, -1 do
    if read_slot(base, buckets + 1, bucket) ~= 0 then
      return (bucket + buckets + 1) * width
    end
  end
  return newest * width
end

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit; HUGE (never) for a cost above the
-- limit. A bucket (one of `buckets` parts of the window) counts with all its units while any of it lies in the window, and leaves
-- it when the bucket begins that comes `buckets` later: the search drops the oldest buckets, one after the other, until the cost
-- fits. newest is the number of the newest bucket, total the units of all, base the byte at which their slots begin. capacity, ticks
-- and tick are what other algorithms need here.
local function sliding_window_earliest(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  local width = window / buckets
  local oldest = floor(from / width) - buckets
  local sum = sliding_window_total_at(newest, total, base, buckets, oldest + buckets)
  if sum + cost <= limit then
    return from
  end
  while sum + cost > limit and oldest <= newest do
    sum = sum - sliding_window_count_of(newest, base, buckets, oldest)
    oldest = oldest + 1
  end
  return (oldest + buckets) * width
end

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit; HUGE (never) for a cost above the
-- limit. The oldest bucket that touches the window counts only by the part of it that the window still covers, so its units fade
-- away evenly over the `span` ticks of a bucket. `over` is the number of units that are too many, times span: the cost fits once
-- over / oldest ticks have passed since `bucket` began. If `bucket` ends sooner, the search goes on in the next one.
local function sliding_window_weighted_earliest(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  local width, span = window / buckets, window_ticks / buckets
  local bucket = floor(from / width)
  local sum = sliding_window_total_at(newest, total, base, buckets, bucket)
  local instant = from
  while true do
    local oldest = sliding_window_count_of(newest, base, buckets, bucket - buckets)
    local over = (sum + cost - limit) * span
    if bucket - buckets > newest or over <= oldest * floor((instant % width) / tick) then
      return instant
    end
    local faded = ceil(over / oldest)
    if faded < span then
      return bucket * width + faded * tick
    end
    sum = sum - oldest
    bucket = bucket + 1
    instant = bucket * width
  end
end

-- Takes up to `units` units out of a bucket, one of the `buckets` parts of the window, as far as it has them. Returns the cells
-- (number of the newest bucket, total of all buckets that are kept) and how many units it took.
local function sliding_window_take_from_bucket(newest, total, base, buckets, bucket, units)
  local count = sliding_window_count_of(newest, base, buckets, bucket)
  local taken = min(units, count)
  if taken > 0 then
    fill_slots(base, buckets + 1, bucket, 1, count - taken)
  end
  return newest, total - taken, taken
end

-- Gives back up to cost units: first those of number `bucket`, in which now lies, then those of older buckets. Later buckets
-- hold the units of bookings, which stay. Returns the cells (number of the newest bucket, total of all that are kept) and how
-- many units were given back, which may be fewer than cost.
local function sliding_window_refund(newest, total, base, buckets, bucket, cost)
  local given, taken = 0, 0
  for b = min(bucket, newest), max(newest, bucket) - buckets, -1 do
    newest, total, taken = sliding_window_take_from_bucket(newest, total, base, buckets, b, cost - given)
    given = given + taken
    if given == cost then
      break
    end
  end
  return newest, total, given
end

-- Returns the units that count at `instant` (microseconds): the sum of all buckets that touch the window ending there, each with
-- all its units. A bucket is one of `buckets` parts of the window. The weighted variant counts the oldest one only in part.
local function sliding_window_whole_at(newest, total, base, window, window_ticks, tick, buckets, instant)
  return sliding_window_total_at(newest, total, base, buckets, floor(instant / (window / buckets)))
end

-- Returns the units that count at `instant` (microseconds). Every bucket, one of `buckets` parts of the window, that touches the
-- window ending there counts in full, less the faded share of the oldest one: the share of its ticks that the window has left
-- behind already, in whole units, rounded down.
local function sliding_window_weighted_at(newest, total, base, window, window_ticks, tick, buckets, instant)
  local width = window / buckets
  local bucket = floor(instant / width)
  local oldest = sliding_window_count_of(newest, base, buckets, bucket - buckets)
  local faded = floor(oldest * floor((instant % width) / tick) / (window_ticks / buckets))
  return sliding_window_total_at(newest, total, base, buckets, bucket) - faded
end

-- Makes number `bucket` the newest bucket, unless it is older. The slots of buckets are used in turn, so those of the new ones
-- still hold the units of buckets that have left the window, and are set to 0. Returns the cells: number of the newest bucket,
-- and total, the units of all N+1 buckets that are kept.
local function sliding_window_slide_to(newest, total, base, buckets, bucket)
  if bucket <= newest then
    return newest, total
  end
  total = sliding_window_total_at(newest, total, base, buckets, bucket)
  local first = max(newest + 1, bucket - buckets)
  fill_slots(base, buckets + 1, first, bucket + 1 - first, 0)
  return bucket, total
end

-- Adds cost units to a bucket, but none beyond twice the limit: `counted` units count in the window before. Only forced charges,
-- which are made whether they fit or not, reach that bound. Returns the cells (number of the newest bucket, total of all buckets)
-- and how many units were added.
local function sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
  local added = min(cost, max(0, 2 * limit - counted))
  fill_slots(base, buckets + 1, bucket, 1, read_slot(base, buckets + 1, bucket) + added)
  return newest, total + added, added
end

-- Charges cost units in the bucket of the instant `at`, whether they fit or not; a cost below 0 gives units back. No units are added
-- beyond twice the limit, so that forced charges stay bounded. Each bucket (one of `buckets` parts of the window) that touches the
-- window counts with all its units towards that bound. Returns the cells (number of the newest bucket, total of all that are
-- kept) and how many units took effect, as a positive number.
local function sliding_window_admit(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, at, cost
)
  local bucket = floor(at / (window / buckets))
  if cost < 0 then
    return sliding_window_refund(newest, total, base, buckets, bucket, -cost)
  end
  newest, total = sliding_window_slide_to(newest, total, base, buckets, bucket)
  local counted = sliding_window_whole_at(newest, total, base, window, window_ticks, tick, buckets, at)
  return sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
end

-- Charges cost units in the bucket of the instant `at`, whether they fit or not; a cost below 0 gives units back. No units are
-- added beyond twice the limit, so that forced charges stay bounded. Unlike in sliding_window_admit, the oldest bucket counts
-- towards that bound only by the part of it that the window still covers, so more units may be added. Returns the cells (number
-- of the newest bucket, total of all that are kept) and how many units took effect, as a positive number.
local function sliding_window_weighted_admit(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, at, cost
)
  local bucket = floor(at / (window / buckets))
  if cost < 0 then
    return sliding_window_refund(newest, total, base, buckets, bucket, -cost)
  end
  newest, total = sliding_window_slide_to(newest, total, base, buckets, bucket)
  local counted = sliding_window_weighted_at(newest, total, base, window, window_ticks, tick, buckets, at)
  return sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
end

-- Returns the units that remain at now, where `counted` units count against the limit, and the instant at which none counts any
-- more, which is now if none does. newest is the number of the newest bucket (one of `buckets` parts of the window, `width`
-- microseconds long, the first of 1970 is 0), base the byte at which the slots of the buckets begin.
local function sliding_window_show(newest, base, limit, width, buckets, now, counted)
  if counted == 0 then
    return limit, now
  end
  return limit - counted, sliding_window_empty_at(newest, base, width, buckets)
end

-- Returns the units that could be spent at now, and the instant, in microseconds, at which none counts any more. Every bucket,
-- one of `buckets` parts of the window, that touches the window counts with all its units.
local function sliding_window_view(newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now)
  local counted = sliding_window_whole_at(newest, total, base, window, window_ticks, tick, buckets, now)
  return sliding_window_show(newest, base, limit, window / buckets, buckets, now, counted)
end

-- Returns the units that could be spent at now, and the instant, in microseconds, at which none counts any more. The oldest
-- bucket that touches the window counts only by the part of it that the window still covers.
local function sliding_window_weighted_view(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now
)
  local counted = sliding_window_weighted_at(newest, total, base, window, window_ticks, tick, buckets, now)
  return sliding_window_show(newest, base, limit, window / buckets, buckets, now, counted)
end

-- Decides a call at now in one pass, if now lies in the newest bucket, one of `buckets` parts of the window. Returns whether cost
-- fits and, valid only if it does: the cells after the charge (number of the newest bucket, total of all), the units that remain,
-- the instant at which none counts any more, the byte in the state at which the newest bucket's slot begins, and its new content.
-- Returns false also for any other bucket and for a corrupt slot: the engine, which decides all other calls, then takes over. The
-- composer of scripts puts this body where it is called.
local function sliding_window_take(newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now, cost)
  local width = window / buckets
  local slot = base + newest % (buckets + 1) * 8
  local units = unpack('<d', fixed, slot + 1)
  local fits = floor(now / width) == newest and total + cost <= limit and units >= 0 and units <= total and units % 1 == 0
  return fits, newest, total + cost, limit - total - cost, (newest + buckets + 1) * width, slot, pack('<d', units + cost)
end

-- Decides a call at now in one pass, if now lies in the newest bucket, one of `buckets` parts of the window. total holds the
-- oldest bucket in full, so the share of it that the window has left behind is added to what is left of the limit. Returns
-- whether cost fits and, valid only if it does: the cells after the charge (number of the newest bucket, total of all), the units
-- that remain, the instant at which none counts any more, the byte in the state at which the newest bucket's slot begins, and its
-- new content. Returns false also for any other bucket and for a corrupt slot: the engine, which decides all other calls, then
-- takes over.
local function sliding_window_weighted_take(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now, cost
)
  local width, cap = window / buckets, buckets + 1
  local slot = base + newest % cap * 8
  local units, oldest = unpack('<d', fixed, slot + 1), unpack('<d', fixed, base + (newest + 1) % cap * 8 + 1)
  local faded = floor(oldest * floor((now % width) / tick) / (window_ticks / buckets))
  local left = limit - cost - total + faded
  local fits = floor(now / width) == newest and left >= 0 and units >= 0 and units <= total and units % 1 == 0
    and oldest >= 0 and oldest <= total and oldest % 1 == 0
  return fits, newest, total + cost, left, (newest + buckets + 1) * width, slot, pack('<d', units + cost)
end

-- Gives back up to `units` units of a charge made at charged_at, as far as the bucket of that instant, one of `buckets` parts of
-- the window, still has them and still touches the window at now. Returns the cells (number of the newest bucket, total of all
-- that are kept) and how many units were given back.
local function sliding_window_release(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  local width = window / buckets
  local bucket = floor(charged_at / width)
  if bucket < floor(now / width) - buckets then
    return newest, total, 0
  end
  return sliding_window_take_from_bucket(newest, total, base, buckets, bucket, units)
end

-- Gives back up to `units` units of a charge made at charged_at, as far as the bucket of that instant still has them and still
-- touches the window at now. Buckets hold plain units here too, and are weighted only when they are counted, so this is the same
-- as without weights. Returns the cells (number of the newest bucket, total of all) and how many units were given back.
local function sliding_window_weighted_release(
  newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  return sliding_window_release(
    newest, total, base, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
  )
end
