-- GCRA as a debt that drains; twin of algorithms/debt/debt.ts. The leaky bucket and the token bucket share it.
-- cells: debt, since, fastest
-- valid: since <= latest, debt * tick <= (expires - since) * fastest
-- The engine checks this of each state it reads (README.md): latest is the instant of the last write or booking, expires the
-- instant at which Redis drops the key. Expires is at least one second after the debt has drained under the limit of the last
-- write, and that limit is at most fastest. That second exceeds the rounding error of the products.
--   debt     units x ticks, as of since
--   since    the instant of debt, in microseconds
--   fastest  the largest limit that has drained the debt, in units per window

-- Returns the debt that is left at `instant`, of a debt as of the instant `since`, both in microseconds: each whole tick (`tick`
-- microseconds) in between drains limit of it. A debt is in units x ticks: a unit weighs as much as a window has ticks, so limit
-- units drain in a window. A debt of 0 stays 0, and an instant before `since` drains nothing.
local function gcra_debt_at(debt, since, limit, tick, instant)
  local elapsed = instant - since
  if debt == 0 or elapsed <= 0 then
    return debt
  end
  return max(0, debt - floor(elapsed / tick) * limit)
end

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit: when so much of the debt has
-- drained that debt and cost together are within capacity; HUGE (never) for a cost above capacity. The debt is in units x ticks:
-- a unit weighs as much as a window has ticks. All algorithms have the same parameters; this one needs no fastest, window and
-- buckets.
local function gcra_earliest(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, from, cost)
  if cost > capacity then
    return HUGE
  end
  local max_debt = (capacity - cost) * window_ticks
  if gcra_debt_at(debt, since, limit, tick, from) <= max_debt then
    return from
  end
  return since + ceil((debt - max_debt) / limit) * tick
end

-- Drains the debt (units x ticks) from its instant `since` up to the instant `at`: by `limit` for each whole tick (`tick`
-- microseconds) in between. Returns the three cells: the debt that is left, the instant as of which it is counted, and `fastest`,
-- the largest limit that has ever drained it, by which a later release bounds what it gives back.
local function gcra_drain(debt, since, fastest, limit, tick, at)
  local owed = gcra_debt_at(debt, since, limit, tick, at)
  local ends_within_a_tick = owed <= limit
  if owed == 0 or (at > since and ends_within_a_tick) then
    -- What is left of the tick is idle time, which must not drain the next charge.
    since = at
  elseif at > since then
    -- Only whole ticks have drained: what is left of the tick counts towards the next one.
    since = at - (at - since) % tick
  end
  return owed, since, max(fastest, limit)
end

-- Charges cost units at the instant `at`, whether they fit or not; a cost below 0 gives units back, down to a debt of 0. A charge
-- raises the debt (units x ticks) to at most twice the capacity, or leaves it where it was above that: otherwise forced charges,
-- which are made whether they fit or not, could block a key for ever. Returns debt, since (the instant of that debt), fastest (the
-- largest limit that has drained it) and how many units took effect, as a positive number.
local function gcra_admit(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, at, cost)
  debt, since, fastest = gcra_drain(debt, since, fastest, limit, tick, at)
  local most = max(debt, 2 * capacity * window_ticks)
  local new_debt = max(0, min(most, debt + cost * window_ticks))
  return new_debt, since, fastest, (cost < 0 and debt - new_debt or new_debt - debt) / window_ticks
end

-- Returns the units that could be spent at now, and the instant in microseconds at which the debt will have drained: now if there
-- is none. The debt (units x ticks) takes whole units from the capacity, rounded up.
local function gcra_view(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now)
  local owed = gcra_debt_at(debt, since, limit, tick, now)
  local remaining = capacity - ceil(owed / window_ticks)
  if owed == 0 then
    return remaining, now
  end
  return remaining, since + ceil(debt / limit) * tick
end

-- Decides a plain call, which charges cost at once or is denied, at the instant now, which is not before since. Returns whether
-- the cost fits; the cells debt (units x ticks), since (the instant of that debt) and fastest (the largest limit that has
-- drained it) after the charge; the units that remain; and the instant at which the debt has drained. All but the first are valid
-- only if it fits. As in gcra_drain, since moves by whole ticks, so that the rest of a tick drains later, or to now where the
-- debt ends inside that tick. The composer of scripts puts this body where it is called.
local function gcra_take(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now, cost)
  local elapsed = now - since
  local passed = floor(elapsed / tick)
  local owed = max(0, debt - passed * limit)
  local new_debt = owed + cost * window_ticks
  local new_since = owed <= limit and now or since + passed * tick
  -- The composer writes max and ceil as operators, which repeat their arguments: variables save the second division.
  local units, ticks_left = new_debt / window_ticks, new_debt / limit
  return new_debt <= capacity * window_ticks, new_debt, new_since, max(fastest, limit),
    capacity - ceil(units), new_since + ceil(ticks_left) * tick
end

-- Gives back up to `units` of the `charged` units of a charge made at charged_at, but only units that have not drained by now.
-- Compare the debt with and without the charge: at first they differ by its cost. The difference shrinks only while the debt
-- without the charge is empty, and by at most what fastest, the largest limit so far, drains. So at least the cost less what
-- fastest drains since the charge is left, and that much may be given back. Returns the cells (debt, since, fastest) and how many
-- units were given back.
local function gcra_release(
  debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  debt, since, fastest = gcra_drain(debt, since, fastest, limit, tick, now)
  local left = charged * window_ticks - ceil((now - charged_at) / tick) * fastest
  local given = max(0, min(min(units * window_ticks, left), debt))
  return debt - given, since, fastest, given / window_ticks
end
