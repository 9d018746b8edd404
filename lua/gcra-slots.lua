-- The debt of gcra.lua with slots; twin of algorithms/debt/slots.ts. The charges of the last two windows are counted apart in
-- slots of equal width, as if each slot's had come at its end.
-- needs: slots, gcra
-- cells: debt, since, fastest
-- slots: buckets + 3
-- valid: since <= latest, debt * tick <= (expires - since) * fastest
--   debt, since, fastest  see gcra.lua
-- In their places lie three numbers, then the units charged in each slot: those of number s in place FIRST_SLOT + s mod buckets.
--   BEGUN   microseconds, from when on charges are kept apart; EXACT: they are not
--   BEFORE  units x ticks owed when the oldest slot began
--   NEWEST  number of the newest slot

-- Returns the earliest instant, not before `from`, at which cost units fit; HUGE (never) for a cost above capacity. The slots,
-- which count the charges of the last two windows apart, serve only to give units back. The debt itself is exact, so the function
-- without slots answers.
local function gcra_slots_earliest(
  debt, since, fastest, base, limit, capacity, window, window_ticks, tick, buckets, from, cost
)
  return gcra_earliest(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, from, cost)
end

-- Returns the units that could be spent at now, and the instant at which the debt will have drained. The slots, which count the
-- charges of the last two windows apart, serve only to give units back. The debt itself is exact, so the function without slots
-- answers.
local function gcra_slots_view(
  debt, since, fastest, base, limit, capacity, window, window_ticks, tick, buckets, now
)
  return gcra_view(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now)
end

-- Returns the width of one slot in ticks: `buckets` slots together span two windows, rounded up.
local function gcra_slots_width(window_ticks, buckets)
  return ceil(2 * window_ticks / buckets)
end

-- Returns the units that were charged in one slot, a span of time whose charges are counted apart so that they can be given back.
-- `slot` is its number, counted from instant 0 of the clock. The places of the state, from byte `base` on, hold three other numbers
-- before place FIRST_SLOT. The others hold the units of the newest `buckets` slots: a new slot takes the place of the one that came
-- `buckets` slots earlier.
local function gcra_slots_units(base, buckets, slot)
  return read_slot(base, FIRST_SLOT + buckets, FIRST_SLOT + slot % buckets)
end

-- Drains a debt (units x ticks) for `passed` ticks, by limit in each, then charges `units`: a unit weighs as much as a window has
-- ticks. Returns the new debt, at most 2^52, so that later sums of two such numbers are exact in a double.
local function gcra_slots_drain_and_charge(debt, passed, units, limit, window_ticks)
  return min(4503599627370496, max(0, debt - passed * limit) + units * window_ticks)
end

-- Makes slot number `slot` the newest, unless a newer one is. A slot is a span of time whose charges are counted apart so that
-- they can be given back. Only the newest `buckets` slots are kept, and new ones begin with 0 units. The charges of a slot that
-- leaves are added to `before`, the debt (units x ticks) with which the oldest kept slot begins, as far as they have not drained.
-- Slots that were passed without a charge and leave too only drain it.
local function gcra_slots_slide_to(base, limit, window_ticks, buckets, slot)
  local places = FIRST_SLOT + buckets
  local before, newest = read_slot(base, places, BEFORE), read_slot(base, places, NEWEST)
  if slot <= newest then
    return
  end
  local width = gcra_slots_width(window_ticks, buckets)
  local last_dropped = slot - buckets
  for leaving = newest - buckets + 1, min(newest, last_dropped) do
    before = gcra_slots_drain_and_charge(before, width, gcra_slots_units(base, buckets, leaving), limit, window_ticks)
  end
  local uncharged = max(0, last_dropped - newest)
  before = max(0, before - uncharged * width * limit)
  for new = max(newest, last_dropped) + 1, slot do
    fill_slots(base, places, FIRST_SLOT + new % buckets, 1, 0)
  end
  fill_slots(base, places, BEFORE, 1, before)
  fill_slots(base, places, NEWEST, 1, slot)
end

-- Adds units that were charged at the instant `at` to the slot of that instant, a span of time whose charges are counted apart. A
-- slot counts at most twice the capacity (the bound of the debt that a charge leaves) and what drains in the width of a slot.
local function gcra_slots_record(base, limit, capacity, window_ticks, tick, buckets, at, units)
  local width = gcra_slots_width(window_ticks, buckets)
  local slot = floor(at / (width * tick))
  gcra_slots_slide_to(base, limit, window_ticks, buckets, slot)
  local count = gcra_slots_units(base, buckets, slot)
  local most = 2 * capacity + ceil(limit * width / window_ticks)
  local added = min(ceil(units), max(0, most - count))
  fill_slots(base, FIRST_SLOT + buckets, FIRST_SLOT + slot % buckets, 1, count + added)
end

-- Computes the debt (units x ticks) at `instant`, no earlier than the newest charge, from the slots, which count the charges of the
-- last two windows. It is used when units that are given back were taken out of a slot: they are no longer part of the debt then.
-- Begins with the debt before the oldest slot, then drains and charges slot by slot. A slot's charges count as if made at its end;
-- those of the newest slot at `instant`, if that comes before its end.
local function gcra_slots_recount(base, limit, window_ticks, tick, buckets, instant)
  local places = FIRST_SLOT + buckets
  local debt, newest = read_slot(base, places, BEFORE), read_slot(base, places, NEWEST)
  local width = gcra_slots_width(window_ticks, buckets)
  for slot = newest - buckets + 1, newest - 1 do
    debt = gcra_slots_drain_and_charge(debt, width, gcra_slots_units(base, buckets, slot), limit, window_ticks)
  end
  local newest_began = newest * width * tick
  local passed = floor((instant - newest_began) / tick)
  local in_newest = min(passed, width)
  debt = gcra_slots_drain_and_charge(debt, in_newest, gcra_slots_units(base, buckets, newest), limit, window_ticks)
  local after_newest = passed - in_newest
  return max(0, debt - after_newest * limit)
end

-- Charges cost units at the instant `at` as gcra_admit does, and counts them in the slot of that instant, a part of time whose
-- charges are counted apart so that they can be given back exactly. The debt is computed from slots as one limit drains it. So
-- slots begin to count, at the instant in place BEGUN, with a charge on a debt of 0 (is_first), and only if no larger limit is known
-- to drain the debt (is_steady): then they hold all that makes up the debt. Once a call finds that another limit has drained it,
-- that instant becomes EXACT, which is later than any charge: the slots count nothing until they begin anew. Returns the cells
-- (debt, since, fastest) and how many units took effect.
local function gcra_slots_admit(
  debt, since, fastest, base, limit, capacity, window, window_ticks, tick, buckets, at, cost
)
  local places = FIRST_SLOT + buckets
  local has_other_limit = fastest ~= 0 and fastest ~= limit
  if has_other_limit then
    fill_slots(base, places, BEGUN, 1, EXACT)
  end
  local is_first = gcra_debt_at(debt, since, limit, tick, at) == 0
  local is_steady = fastest <= limit
  local units
  debt, since, fastest, units =
    gcra_admit(debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, at, cost)
  if cost > 0 then
    if is_first and is_steady then
      fill_slots(base, places, 0, places, 0)
      fill_slots(base, places, BEGUN, 1, at)
      fill_slots(base, places, NEWEST, 1, floor(at / (gcra_slots_width(window_ticks, buckets) * tick)))
    end
    if read_slot(base, places, BEGUN) ~= EXACT then
      gcra_slots_record(base, limit, capacity, window_ticks, tick, buckets, at, units)
    end
  end
  return debt, since, fastest, units
end

-- Gives back units of a charge made at charged_at, as far as they have not drained by now. If the slot of that instant still
-- counts the charge, its units are taken out of the slot and the debt is computed again without them, which gives back more than
-- gcra_release may: that knows only a bound of what is left of the charge. Otherwise gcra_release decides, as without slots.
-- Returns the cells (debt, since, fastest) and how many units took effect.
local function gcra_slots_release(
  debt, since, fastest, base, limit, capacity, window, window_ticks, tick, buckets,
  now, charged_at, charged, units
)
  local places = FIRST_SLOT + buckets
  local has_other_limit = fastest ~= 0 and fastest ~= limit
  if has_other_limit then
    fill_slots(base, places, BEGUN, 1, EXACT) -- the slots hold one limit's debt alone
  end
  local owed = gcra_debt_at(debt, since, limit, tick, now)
  local given
  debt, since, fastest, given = gcra_release(
    debt, since, fastest, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
  )
  local begun, newest = read_slot(base, places, BEGUN), read_slot(base, places, NEWEST)
  local slot = floor(charged_at / (gcra_slots_width(window_ticks, buckets) * tick))
  local is_counted = charged_at >= begun and slot <= newest and slot > newest - buckets
  if is_counted then
    local units_left = max(0, gcra_slots_units(base, buckets, slot) - units)
    fill_slots(base, places, FIRST_SLOT + slot % buckets, 1, units_left)
    local recounted = gcra_slots_recount(base, limit, window_ticks, tick, buckets, now)
    if recounted < debt then
      debt, since, given = recounted, now, min(units, (owed - recounted) / window_ticks)
    end
  end
  return debt, since, fastest, given
end
