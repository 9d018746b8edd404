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

-- Returns how many tokens are missing from a full bucket at `instant`, if `missing` were missing at the instant `since`. Each multiple
-- of the window (microseconds) refills limit tokens, so the multiples between both instants are counted. There are none if `instant`
-- is the earlier one, as after a clock was set back.
local function token_bucket_interval_missing_at(missing, since, limit, window, instant)
  local passed = (instant - instant % window) - (since - since % window)
  return max(0, missing - max(0, passed) / window * limit)
end

-- Returns the earliest instant, in microseconds and not before `from`, at which the bucket has cost tokens: `from`, or the refill
-- that brings enough; HUGE (never) for a cost above the capacity. Each multiple of the window refills limit tokens.
local function token_bucket_interval_earliest(
  missing, since, fastest, limit, capacity, window, window_ticks, tick, buckets, from, cost
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

-- Takes cost tokens at the instant `at`, even if the bucket has fewer; a cost below 0 gives tokens back. A charge leaves at most
-- twice the capacity missing, or as many as before if they were more, so that forced charges stay bounded. Returns the cells and
-- how many tokens took effect. The cells are the tokens missing from a full bucket, the instant of that number, and the largest
-- limit that has ever refilled the bucket. All algorithms have the same parameters, of which each uses some.
local function token_bucket_interval_admit(
  missing, since, fastest, limit, capacity, window, window_ticks, tick, buckets, at, cost
)
  local before = token_bucket_interval_missing_at(missing, since, limit, window, at)
  missing = max(0, min(max(before, 2 * capacity), before + cost))
  return missing, max(at, since), max(fastest, limit), cost < 0 and before - missing or missing - before
end

-- Returns the tokens that could be spent at now, and the instant of the refill that fills the bucket, which is now if it is full.
-- Refills of limit tokens come at multiples of the window (microseconds). since lies after now where tokens were booked for a
-- call that waits.
local function token_bucket_interval_view(
  missing, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now
)
  local short = token_bucket_interval_missing_at(missing, since, limit, window, now)
  local remaining = capacity - short
  if short == 0 then
    return remaining, now
  end
  local from = max(now, since)
  return remaining, from - from % window + ceil(short / limit) * window
end

-- Decides a call of cost tokens in one pass, at an instant now that is not before since. Returns whether the bucket has them and,
-- valid only if it has: the cells after the charge (tokens missing from a full bucket, the instant now, the largest limit of any
-- refill so far), the tokens that remain, and the instant of the refill that fills the bucket. Each multiple of the window refills
-- limit tokens. The composer of scripts puts this body where it is called.
local function token_bucket_interval_take(
  missing, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now, cost
)
  local refilled = now - now % window
  local short = max(0, missing - (refilled - (since - since % window)) / window * limit) + cost
  return short <= capacity, short, now, max(fastest, limit), capacity - short, refilled + ceil(short / limit) * window
end

-- Gives back at most `units` of the `charged` tokens of a charge made at charged_at. Each refill since then, at a multiple of the
-- window, may have brought back as many of them as fastest, the largest limit of any refill so far: those are not given back
-- twice. No more are given back than are missing. Returns the cells (tokens missing, the instant since when, fastest) and how
-- many tokens were given back.
local function token_bucket_interval_release(
  missing, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  missing = token_bucket_interval_missing_at(missing, since, limit, window, now)
  fastest = max(fastest, limit)
  local refills = ((now - now % window) - (charged_at - charged_at % window)) / window
  local given = max(0, min(min(units, charged - refills * fastest), missing))
  return missing - given, max(now, since), fastest, given
end
