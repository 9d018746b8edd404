-- Token bucket; twin of algorithms/token-bucket.ts. Greedy refill is the debt of gcra.lua, interval refill counts the
-- tokens that are missing.
-- needs: gcra
-- functions: gcra
-- cells: missing, since, fastest
-- valid: since <= latest, missing * tick <= (expires - since) * fastest
-- valid of token-bucket-interval: since <= latest, (missing * window <= (expires - since + window) * fastest or expires >= NEVER)
--   missing  interval refill: tokens missing after the refill at or before the instant since; greedy: see gcra.lua
--   since    microseconds
--   fastest  units per window, the largest limit that has refilled the bucket

local function token_bucket_interval_missing_at(missing, since, limit, window, instant)
  local passed = (instant - instant % window) - (since - since % window)
  return max(0, missing - max(0, passed) / window * limit)
end

local function token_bucket_interval_earliest(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, from, cost
)
  if cost > capacity then
    return HUGE
  end
  local short = token_bucket_interval_missing_at(missing, since, limit, window, from) + cost - capacity
  if short <= 0 then
    return from
  end
  return from - from % window + ceil(short / limit) * window
end

local function token_bucket_interval_admit(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, at, cost
)
  local before = token_bucket_interval_missing_at(missing, since, limit, window, at)
  missing = max(0, min(max(before, 2 * capacity), before + cost))
  return missing, max(at, since), max(fastest, limit), cost < 0 and before - missing or missing - before
end

local function token_bucket_interval_view(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, now
)
  local short = token_bucket_interval_missing_at(missing, since, limit, window, now)
  local remaining = max(0, capacity - short)
  if short == 0 then
    return remaining, now
  end
  local from = max(now, since)
  return remaining, from - from % window + ceil(short / limit) * window
end

-- The plain call: whether the cost fits at now, which is not before since, and what admit and view give then.
local function token_bucket_interval_take(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, now, cost
)
  local refilled = now - now % window
  local short = max(0, missing - (refilled - (since - since % window)) / window * limit) + cost
  return short <= capacity, short, now, max(fastest, limit), capacity - short, refilled + ceil(short / limit) * window
end

-- As in gcra.lua: what the refills since the charge may have given back already is not given back again.
local function token_bucket_interval_release(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  missing = token_bucket_interval_missing_at(missing, since, limit, window, now)
  fastest = max(fastest, limit)
  local refills = ((now - now % window) - (charged_at - charged_at % window)) / window
  local given = max(0, min(min(units, charged - refills * fastest), missing))
  return missing - given, max(now, since), fastest, given
end
