-- The debt of gcra.lua with slots; twin of algorithms/debt/slots.ts. The charges of the last two windows are counted apart in
-- slots of equal width, as if each slot's had come at its end.
-- needs: slots, gcra
-- cells: debt, since, fastest
-- slots: buckets + 3
-- valid: since <= latest, debt * tick <= (expires - since) * fastest
--   debt, since, fastest  see gcra.lua
-- In the slots lie begun, before, newest, then the units charged in slot number s in the (s mod buckets)-th one.
--   begun   microseconds, from when on charges are kept apart; EXACT: they are not
--   before  units x ticks owed when the oldest slot began
--   newest  number of the newest slot

-- The earliest instant from `from` on at which cost fits. Slots make no difference to that, so the plain debt is asked.
local function gcra_slots_earliest(
  debt, since, fastest, base, limit, capacity, window, ticks, tick, buckets, from, cost
)
  return gcra_earliest(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, from, cost)
end

-- The units that remain at now, and when all of it is back. Slots make no difference to that, so the plain debt is asked.
local function gcra_slots_view(
  debt, since, fastest, base, limit, capacity, window, ticks, tick, buckets, now
)
  return gcra_view(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now)
end

-- The width of one slot in ticks. All slots together span two windows, rounded up.
local function gcra_slots_width(ticks, buckets)
  return ceil(2 * ticks / buckets)
end

-- The units charged in the slot of this number. The first three slots hold other numbers (see above), and those behind them
-- are used in turn, so the number counts modulo buckets.
local function gcra_slots_units(base, buckets, slot)
  return read_slot(base, buckets + 3, 3 + slot % buckets)
end

-- The debt, in units x ticks, after it has drained for passed ticks, at limit units in ticks, and units were charged on
-- top. It stays at or below 2^52, so that later sums are exact.
local function gcra_slots_behind(debt, passed, units, limit, ticks)
  return min(4503599627370496, max(0, debt - passed * limit) + units * ticks)
end

-- Makes slot the newest, if it is later, so that charges up to it have a slot. The oldest ones fall out, and what they
-- owe is added to the debt before the others.
local function gcra_slots_slide_to(base, limit, ticks, buckets, slot)
  local before, newest = read_slot(base, buckets + 3, 1), read_slot(base, buckets + 3, 2)
  if slot <= newest then
    return
  end
  local width = gcra_slots_width(ticks, buckets)
  for b = newest - buckets + 1, min(newest, slot - buckets) do
    before = gcra_slots_behind(before, width, gcra_slots_units(base, buckets, b), limit, ticks)
  end
  before = max(0, before - max(0, slot - buckets - newest) * width * limit)
  for b = max(newest + 1, slot - buckets + 1), slot do
    fill_slots(base, buckets + 3, 3 + b % buckets, 1, 0)
  end
  fill_slots(base, buckets + 3, 1, 1, before)
  fill_slots(base, buckets + 3, 2, 1, slot)
end

-- Adds units that were charged at the instant at to the count of that instant's slot. A slot holds at most twice the capacity
-- and what drains in its width; units above that are not counted.
local function gcra_slots_record(base, limit, capacity, ticks, tick, buckets, at, units)
  local width = gcra_slots_width(ticks, buckets)
  local slot = floor(at / (width * tick))
  gcra_slots_slide_to(base, limit, ticks, buckets, slot)
  local count = gcra_slots_units(base, buckets, slot)
  local most = 2 * capacity + ceil(limit * width / ticks)
  local added = min(ceil(units), max(0, most - count))
  fill_slots(base, buckets + 3, 3 + slot % buckets, 1, count + added)
end

-- The debt at instant, no earlier than the newest charge, as the slots say: the debt before them, then slot by slot
-- what was charged less what drained.
local function gcra_slots_recount(base, limit, ticks, tick, buckets, instant)
  local debt, newest = read_slot(base, buckets + 3, 1), read_slot(base, buckets + 3, 2)
  local width = gcra_slots_width(ticks, buckets)
  for slot = newest - buckets + 1, newest - 1 do
    debt = gcra_slots_behind(debt, width, gcra_slots_units(base, buckets, slot), limit, ticks)
  end
  local passed = floor((instant - newest * width * tick) / tick)
  local in_newest = min(passed, width)
  debt = gcra_slots_behind(debt, in_newest, gcra_slots_units(base, buckets, newest), limit, ticks)
  return max(0, debt - (passed - in_newest) * limit)
end

-- Charges cost at the instant at as gcra_admit does, and counts the units in their slot. Slots hold charges under one limit
-- alone. Under another they end: begun becomes EXACT, which says that no charges are kept apart and the debt is exact by
-- itself. They begin anew with a charge on a debt of 0.
local function gcra_slots_admit(
  debt, since, fastest, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  if fastest ~= 0 and fastest ~= limit then
    fill_slots(base, buckets + 3, 0, 1, EXACT) -- the slots hold one limit's debt alone
  end
  local is_first = gcra_debt_at(debt, since, limit, tick, at) == 0
  local is_steady = fastest <= limit
  local units
  debt, since, fastest, units =
    gcra_admit(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, at, cost)
  if cost > 0 then
    if is_first and is_steady then
      fill_slots(base, buckets + 3, 0, buckets + 3, 0)
      fill_slots(base, buckets + 3, 0, 1, at)
      fill_slots(base, buckets + 3, 2, 1, floor(at / (gcra_slots_width(ticks, buckets) * tick)))
    end
    if read_slot(base, buckets + 3, 0) ~= EXACT then
      gcra_slots_record(base, limit, capacity, ticks, tick, buckets, at, units)
    end
  end
  return debt, since, fastest, units
end

-- Gives back units of a charge made at charged_at. If that is counted in a slot, it is taken out there and the debt
-- computed again; otherwise as without slots. Returns the cells and how many units took effect.
local function gcra_slots_release(
  debt, since, fastest, base, limit, capacity, window, ticks, tick, buckets,
  now, charged_at, charged, units
)
  if fastest ~= 0 and fastest ~= limit then
    fill_slots(base, buckets + 3, 0, 1, EXACT)
  end
  local owed = gcra_debt_at(debt, since, limit, tick, now)
  local given
  debt, since, fastest, given = gcra_release(
    debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
  )
  local begun, newest = read_slot(base, buckets + 3, 0), read_slot(base, buckets + 3, 2)
  local slot = floor(charged_at / (gcra_slots_width(ticks, buckets) * tick))
  if charged_at >= begun and slot <= newest and slot > newest - buckets then
    local left = max(0, gcra_slots_units(base, buckets, slot) - units)
    fill_slots(base, buckets + 3, 3 + slot % buckets, 1, left)
    left = gcra_slots_recount(base, limit, ticks, tick, buckets, now)
    if left < debt then
      debt, since, given = left, now, min(units, (owed - left) / ticks)
    end
  end
  return debt, since, fastest, given
end
