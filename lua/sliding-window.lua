-- Sliding window over N buckets; twin of algorithms/sliding-window.ts. Bucket number b is counted in slot
-- b mod N+1.
-- needs: slots
-- cells: newest, total
-- slots: buckets + 1
-- valid: newest * window <= latest * buckets
--   newest  number of the newest bucket that was booked
--   total   units in the N+1 buckets that end with it

-- Returns the units in bucket number `bucket`, counted from instant 0 of the clock; 0 for one that has left the window or is
-- later than the newest. base is where the slots begin in the state, in bytes.
local function sliding_window_count_of(newest, base, buckets, bucket)
  if bucket > newest or bucket < newest - buckets then
    return 0
  end
  return read_slot(base, buckets + 1, bucket)
end

-- Returns the units in the N+1 buckets that end with number `bucket`: the running total, less the buckets that have left the
-- window by then. Nothing is left once even the newest has.
local function sliding_window_total_at(newest, total, base, buckets, bucket)
  if total == 0 or bucket - buckets > newest then
    return 0
  end
  for b = newest - buckets, bucket - buckets - 1 do
    total = total - read_slot(base, buckets + 1, b)
  end
  return total
end

-- Returns the instant at which the last bucket with units leaves the window. width is the length of a bucket; both in
-- microseconds.
local function sliding_window_empty_at(newest, base, width, buckets)
  for bucket = newest, newest - buckets, -1 do
    if read_slot(base, buckets + 1, bucket) ~= 0 then
      return (bucket + buckets + 1) * width
    end
  end
  return newest * width
end

-- Returns the earliest instant from `from` on at which cost units fit, HUGE (never) for a cost above the limit. Every bucket
-- that touches the window counts with all its units: the oldest buckets leave one by one until the cost fits.
local function sliding_window_earliest(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, from, cost
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

-- Returns the earliest instant from `from` on at which cost units fit, HUGE (never) for a cost above the limit. The oldest
-- bucket counts by its overlap with the window, which shrinks by one tick of its span ticks at a time: the search goes bucket
-- by bucket, until enough of the oldest has faded.
local function sliding_window_weighted_earliest(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  local width, span = window / buckets, ticks / buckets
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

-- Takes up to `units` units out of a bucket. Returns the cells (newest bucket, total) and how many units it took.
local function sliding_window_take_from_bucket(newest, total, base, buckets, bucket, units)
  local count = sliding_window_count_of(newest, base, buckets, bucket)
  local taken = min(units, count)
  if taken > 0 then
    fill_slots(base, buckets + 1, bucket, 1, count - taken)
  end
  return newest, total - taken, taken
end

-- Gives back up to cost units, out of the newest buckets at or before bucket. Returns the cells (newest bucket, total) and how
-- many units were given back.
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

-- Returns the units that count at instant, where every bucket that touches the window counts with all its units.
local function sliding_window_whole_at(newest, total, base, window, ticks, tick, buckets, instant)
  return sliding_window_total_at(newest, total, base, buckets, floor(instant / (window / buckets)))
end

-- Returns the units that count at instant, where the oldest bucket counts by its overlap with the window: less the share of it
-- that has left, rounded down.
local function sliding_window_weighted_at(newest, total, base, window, ticks, tick, buckets, instant)
  local width = window / buckets
  local bucket = floor(instant / width)
  local oldest = sliding_window_count_of(newest, base, buckets, bucket - buckets)
  local faded = floor(oldest * floor((instant % width) / tick) / (ticks / buckets))
  return sliding_window_total_at(newest, total, base, buckets, bucket) - faded
end

-- Makes bucket the newest, if it is later, and sets the buckets up to it to 0: their slots still hold the units of buckets that
-- have left the window. Returns the cells (newest bucket, total).
local function sliding_window_slide_to(newest, total, base, buckets, bucket)
  if bucket <= newest then
    return newest, total
  end
  total = sliding_window_total_at(newest, total, base, buckets, bucket)
  local first = max(newest + 1, bucket - buckets)
  fill_slots(base, buckets + 1, first, bucket + 1 - first, 0)
  return bucket, total
end

-- Adds cost units to a bucket, where counted units count already: at most as many as make twice the limit, a bound that only
-- forced charges meet. Returns the cells (newest bucket, total) and how many units were added.
local function sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
  local added = min(cost, max(0, 2 * limit - counted))
  fill_slots(base, buckets + 1, bucket, 1, read_slot(base, buckets + 1, bucket) + added)
  return newest, total + added, added
end

-- Charges cost units in the bucket of the instant at; a cost below 0 gives units back. Returns the cells (newest bucket, total)
-- and how many units took effect.
local function sliding_window_admit(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  local bucket = floor(at / (window / buckets))
  if cost < 0 then
    return sliding_window_refund(newest, total, base, buckets, bucket, -cost)
  end
  newest, total = sliding_window_slide_to(newest, total, base, buckets, bucket)
  local counted = sliding_window_whole_at(newest, total, base, window, ticks, tick, buckets, at)
  return sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
end

-- Charges cost at the instant at, where the oldest bucket counts by its overlap with the window; a cost below 0 gives
-- units back. Returns the cells (newest bucket, total) and how many units took effect.
local function sliding_window_weighted_admit(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  local bucket = floor(at / (window / buckets))
  if cost < 0 then
    return sliding_window_refund(newest, total, base, buckets, bucket, -cost)
  end
  newest, total = sliding_window_slide_to(newest, total, base, buckets, bucket)
  local counted = sliding_window_weighted_at(newest, total, base, window, ticks, tick, buckets, at)
  return sliding_window_add(newest, total, base, limit, buckets, bucket, cost, counted)
end

-- Returns the units that remain where counted units count at now, and the instant at which the window is empty.
local function sliding_window_show(newest, base, limit, width, buckets, now, counted)
  if counted == 0 then
    return limit, now
  end
  return max(0, limit - counted), sliding_window_empty_at(newest, base, width, buckets)
end

-- Returns the units that could be spent at now, and the instant at which the window is empty.
local function sliding_window_view(newest, total, base, limit, capacity, window, ticks, tick, buckets, now)
  local counted = sliding_window_whole_at(newest, total, base, window, ticks, tick, buckets, now)
  return sliding_window_show(newest, base, limit, window / buckets, buckets, now, counted)
end

-- Returns the units that could be spent at now, where the oldest bucket counts by its overlap with the window, and the instant
-- at which the window is empty.
local function sliding_window_weighted_view(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, now
)
  local counted = sliding_window_weighted_at(newest, total, base, window, ticks, tick, buckets, now)
  return sliding_window_show(newest, base, limit, window / buckets, buckets, now, counted)
end

-- Decides a call at now in one pass, if now is in the newest bucket. Returns whether cost fits and, valid only if it does: the
-- cells (newest bucket, total) after the charge, the units that remain, the instant at which the window is empty, and the slot
-- of the bucket: where it begins in the state, in bytes, and its new content. False for any other bucket and for a slot that
-- can be no count leaves the call to the engine. The composer of scripts puts this body where it is called.
local function sliding_window_take(newest, total, base, limit, capacity, window, ticks, tick, buckets, now, cost)
  local width = window / buckets
  local slot = base + newest % (buckets + 1) * 8
  local units = unpack('<d', fixed, slot + 1)
  local fits = floor(now / width) == newest and total + cost <= limit and units >= 0 and units <= total and units % 1 == 0
  return fits, newest, total + cost, limit - total - cost, (newest + buckets + 1) * width, slot, pack('<d', units + cost)
end

-- Decides a call at now in one pass, if now is in the newest bucket, where the oldest bucket counts by its overlap with the
-- window. Returns whether cost fits and, valid only if it does: the cells (newest bucket, total) after the charge, the units
-- that remain, the instant at which the window is empty, and the slot of the newest bucket: where it begins in the state, in
-- bytes, and its new content. False for any other bucket and for a slot that can be no count leaves the call to the engine.
local function sliding_window_weighted_take(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, now, cost
)
  local width, cap = window / buckets, buckets + 1
  local slot = base + newest % cap * 8
  local units, oldest = unpack('<d', fixed, slot + 1), unpack('<d', fixed, base + (newest + 1) % cap * 8 + 1)
  local left = limit - cost - total + floor(oldest * floor((now % width) / tick) / (ticks / buckets))
  local fits = floor(now / width) == newest and left >= 0 and units >= 0 and units <= total and units % 1 == 0
    and oldest >= 0 and oldest <= total and oldest % 1 == 0
  return fits, newest, total + cost, left, (newest + buckets + 1) * width, slot, pack('<d', units + cost)
end

-- Gives back up to `units` units of a charge made at charged_at, as far as the bucket of that instant has them and still counts
-- at now. Returns the cells (newest bucket, total) and how many units were given back.
local function sliding_window_release(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  local width = window / buckets
  local bucket = floor(charged_at / width)
  if bucket < floor(now / width) - buckets then
    return newest, total, 0
  end
  return sliding_window_take_from_bucket(newest, total, base, buckets, bucket, units)
end

-- Gives back up to `units` units of a charge made at charged_at, as far as the bucket of that instant has them and still counts
-- at now; the weight of a bucket makes no difference there. Returns the cells (newest bucket, total) and the units given back.
local function sliding_window_weighted_release(
  newest, total, base, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  return sliding_window_release(
    newest, total, base, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
  )
end
