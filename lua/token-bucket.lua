-- Token bucket; twin of algorithms/token-bucket.ts. Greedy refill is the debt of gcra.lua, interval refill counts the
-- tokens that are missing.
-- needs: gcra
-- cells: missing, since
-- holds: since <= latest
--   missing  interval refill: tokens missing after the refill at or before the instant since; greedy: see gcra.lua
--   since    microseconds

local token_bucket_earliest, token_bucket_admit, token_bucket_view = gcra_earliest, gcra_admit, gcra_view

local function token_bucket_interval_missing_at(missing, since, limit, window, instant)
  local passed = (instant - instant % window) - (since - since % window)
  return max(0, missing - max(0, passed) / window * limit)
end

local function token_bucket_interval_earliest(
  missing, since, limit, capacity, window, ticks, tick, buckets, from, cost
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
  missing, since, limit, capacity, window, ticks, tick, buckets, at, cost
)
  local short = token_bucket_interval_missing_at(missing, since, limit, window, at)
  return max(0, min(max(short, 2 * capacity), short + cost)), max(at, since)
end

local function token_bucket_interval_view(missing, since, limit, capacity, window, ticks, tick, buckets, now)
  local short = token_bucket_interval_missing_at(missing, since, limit, window, now)
  local remaining = max(0, capacity - short)
  if short == 0 then
    return remaining, now
  end
  local from = max(now, since)
  return remaining, from - from % window + ceil(short / limit) * window
end
