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

-- Returns how many tokens a full bucket would have more at instant: those missing at since, less the refills between the two.
-- Each multiple of the window, in microseconds, brings limit tokens.
local function token_bucket_interval_missing_at(missing, since, limit, window, instant)
  local passed = (instant - instant % window) - (since - since % window)
  return max(0, missing - max(0, passed) / window * limit)
end

-- Returns the earliest instant from `from` on at which there are cost tokens: `from` itself, the refill that brings enough, or
-- HUGE, never, for a cost above the capacity.
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

-- Takes cost tokens at the instant at; a cost below 0 gives tokens back. A charge leaves at most twice the capacity missing,
-- or what was missing before. Returns the cells (tokens missing, the instant since when, the fastest limit that has drained
-- them) and how many tokens took effect. The algorithms share one signature, of which each uses a part.
local function token_bucket_interval_admit(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, at, cost
)
  local before = token_bucket_interval_missing_at(missing, since, limit, window, at)
  missing = max(0, min(max(before, 2 * capacity), before + cost))
  return missing, max(at, since), max(fastest, limit), cost < 0 and before - missing or missing - before
end

-- Returns the tokens that could be spent at now, and the instant of the refill that fills the bucket, which is now if it is full.
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

-- Decides a call in one pass, at an instant now that is not before since. Returns whether cost fits; missing, since and
-- fastest as admit leaves them; then remaining and the instant at which all is back, as view has them. This body is
-- inlined where it is called.
local function token_bucket_interval_take(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, now, cost
)
  local refilled = now - now % window
  local short = max(0, missing - (refilled - (since - since % window)) / window * limit) + cost
  return short <= capacity, short, now, max(fastest, limit), capacity - short, refilled + ceil(short / limit) * window
end

-- Gives back at most `units` of the `charged` tokens of a charge made at charged_at. Each refill since may have given back as
-- many of them as the largest limit so far (`fastest`): those are not given twice. Returns missing, since and fastest, and how
-- many tokens were given back. All algorithms have these parameters, whether they use them or not.
local function token_bucket_interval_release(
  missing, since, fastest, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  missing = token_bucket_interval_missing_at(missing, since, limit, window, now)
  fastest = max(fastest, limit)
  local refills = ((now - now % window) - (charged_at - charged_at % window)) / window
  local given = max(0, min(min(units, charged - refills * fastest), missing))
  return missing - given, max(now, since), fastest, given
end
