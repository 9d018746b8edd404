-- GCRA as a debt that drains; twin of algorithms/gcra.ts. The leaky bucket and the token bucket share it.
-- cells: debt, since
-- holds: since <= latest
--   debt   units x ticks owed, as it stood at the instant since
--   since  microseconds

local function gcra_debt_at(debt, since, limit, tick, instant)
  local elapsed = instant - since
  if debt == 0 or elapsed <= 0 then
    return debt
  end
  return max(0, debt - floor(elapsed / tick) * limit)
end

local function gcra_earliest(debt, since, limit, capacity, window, ticks, tick, buckets, from, cost)
  if cost > capacity then
    return HUGE
  end
  local room = (capacity - cost) * ticks
  if gcra_debt_at(debt, since, limit, tick, from) <= room then
    return from
  end
  return since + ceil((debt - room) / limit) * tick
end

local function gcra_admit(debt, since, limit, capacity, window, ticks, tick, buckets, at, cost)
  local owed = gcra_debt_at(debt, since, limit, tick, at)
  -- What is left of a tick is kept, unless the debt ends inside that tick: time beyond it is nobody's credit.
  if owed == 0 or at > since and owed <= limit then
    since = at
  elseif at > since then
    since = at - (at - since) % tick
  end
  return max(0, min(max(owed, 2 * capacity * ticks), owed + cost * ticks)), since
end

local function gcra_view(debt, since, limit, capacity, window, ticks, tick, buckets, now)
  local owed = gcra_debt_at(debt, since, limit, tick, now)
  local remaining = max(0, capacity - ceil(owed / ticks))
  if owed == 0 then
    return remaining, now
  end
  return remaining, since + ceil(debt / limit) * tick
end
