-- GCRA as a debt that drains; twin of algorithms/gcra.ts. The leaky bucket and the token bucket share it.
-- cells: debt, since, fastest
-- holds: since <= latest, debt * tick <= (expires - since) * fastest
-- A state lives until its debt has drained under the limit of its last write, which is no larger than fastest: a debt that
-- even fastest would take longer to drain was written by no call. The second by which expires is later than that is more
-- than the products round.
--   debt   units x ticks owed, as it stood at the instant since
--   since  microseconds
--   fastest  units per window, the largest limit that has drained the debt

local function gcra_debt_at(debt, since, limit, tick, instant)
  local elapsed = instant - since
  if debt == 0 or elapsed <= 0 then
    return debt
  end
  return max(0, debt - floor(elapsed / tick) * limit)
end

local function gcra_earliest(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, from, cost)
  if cost > capacity then
    return HUGE
  end
  local room = (capacity - cost) * ticks
  if gcra_debt_at(debt, since, limit, tick, from) <= room then
    return from
  end
  return since + ceil((debt - room) / limit) * tick
end

-- Lets the debt drain until the instant at, under this limit.
local function gcra_drain(debt, since, fastest, limit, tick, at)
  local owed = gcra_debt_at(debt, since, limit, tick, at)
  -- What is left of a tick is kept, unless the debt ends inside that tick: time beyond it is nobody's credit.
  if owed == 0 or at > since and owed <= limit then
    since = at
  elseif at > since then
    since = at - (at - since) % tick
  end
  return owed, since, max(fastest, limit)
end

local function gcra_admit(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, at, cost)
  debt, since, fastest = gcra_drain(debt, since, fastest, limit, tick, at)
  local owed = max(0, min(max(debt, 2 * capacity * ticks), debt + cost * ticks))
  return owed, since, fastest, (cost < 0 and debt - owed or owed - debt) / ticks
end

local function gcra_view(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now)
  local owed = gcra_debt_at(debt, since, limit, tick, now)
  local remaining = max(0, capacity - ceil(owed / ticks))
  if owed == 0 then
    return remaining, now
  end
  return remaining, since + ceil(debt / limit) * tick
end

-- The plain call, put in its place by the composer: whether the cost fits at now, which is not before since, and what
-- admit and view give then.
local function gcra_take(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now, cost)
  local elapsed = now - since
  local passed = floor(elapsed / tick)
  local owed = max(0, debt - passed * limit)
  local level = owed + cost * ticks
  local reference = owed <= limit and now or since + passed * tick
  -- Divided once: max and ceil are put in place with their arguments twice.
  local units, waits = level / ticks, level / limit
  return level <= capacity * ticks, level, reference, max(fastest, limit),
    capacity - ceil(units), reference + ceil(waits) * tick
end

-- A debt is a workload, and what has drained since the charge was given back by time already. With the charge and without
-- it the debts differ by its cost at first; the difference shrinks only while the smaller debt is empty, by no more than
-- the fastest limit drains. As much as surely is left of it is given back.
local function gcra_release(
  debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  debt, since, fastest = gcra_drain(debt, since, fastest, limit, tick, now)
  local left = charged * ticks - ceil((now - charged_at) / tick) * fastest
  local given = max(0, min(min(units * ticks, left), debt))
  return debt - given, since, fastest, given / ticks
end
