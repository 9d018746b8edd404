-- The debt of gcra.lua with slots; twin of algorithms/debt/slots.ts and of what gcra.ts does with it. The charges of the
-- last two windows are counted apart in slots of equal width, as if each slot's had come at its end.
-- needs: slots, gcra
-- cells: debt, since, fastest, begun, before, newest
-- slots: buckets
-- holds: since <= latest
--   debt, since, fastest  see gcra.lua
--   begun   microseconds, from when on charges are kept apart; EXACT: they are not
--   before  units x ticks owed when the oldest slot began
--   newest  number of the newest slot; slot number s counts the units charged in it, in slot s mod buckets

local function debt_slots_earliest(
  debt, since, fastest, begun, before, newest, base, limit, capacity, window, ticks, tick, buckets, from, cost
)
  return gcra_earliest(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, from, cost)
end

local function debt_slots_view(
  debt, since, fastest, begun, before, newest, base, limit, capacity, window, ticks, tick, buckets, now
)
  return gcra_view(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now)
end

-- Ticks in a slot: together they span two windows, or a little more.
local function debt_slots_width(ticks, buckets)
  return ceil(2 * ticks / buckets)
end

-- A debt after it has drained for so many ticks and so many units were charged.
local function debt_slots_behind(debt, passed, units, limit, ticks)
  return min(4503599627370496, max(0, debt - passed * limit) + units * ticks)
end

-- Makes slot the newest. Slots that fall out are added to the debt before the others.
local function debt_slots_slide_to(before, newest, base, limit, ticks, buckets, slot)
  if slot <= newest then
    return before, newest
  end
  local width = debt_slots_width(ticks, buckets)
  for b = newest - buckets + 1, min(newest, slot - buckets) do
    before = debt_slots_behind(before, width, read_slot(base, buckets, b), limit, ticks)
  end
  before = max(0, before - max(0, slot - buckets - newest) * width * limit)
  local first = max(newest + 1, slot - buckets + 1)
  fill_slots(base, buckets, first, slot + 1 - first, 0)
  return before, slot
end

-- Counts units that were charged at the instant at.
local function debt_slots_record(before, newest, base, limit, capacity, ticks, tick, buckets, at, units)
  local width = debt_slots_width(ticks, buckets)
  local slot = floor(at / (width * tick))
  before, newest = debt_slots_slide_to(before, newest, base, limit, ticks, buckets, slot)
  local count = read_slot(base, buckets, slot)
  local most = 2 * capacity + ceil(limit * width / ticks)
  fill_slots(base, buckets, slot, 1, count + min(ceil(units), max(0, most - count)))
  return before, newest
end

-- The debt at instant, no earlier than the newest charge, computed from the slots.
local function debt_slots_recount(before, newest, base, limit, ticks, tick, buckets, instant)
  local width = debt_slots_width(ticks, buckets)
  local debt = before
  for slot = newest - buckets + 1, newest - 1 do
    debt = debt_slots_behind(debt, width, read_slot(base, buckets, slot), limit, ticks)
  end
  local passed = floor((instant - newest * width * tick) / tick)
  local in_newest = min(passed, width)
  debt = debt_slots_behind(debt, in_newest, read_slot(base, buckets, newest), limit, ticks)
  return max(0, debt - (passed - in_newest) * limit)
end

local function debt_slots_admit(
  debt, since, fastest, begun, before, newest, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  if fastest ~= 0 and fastest ~= limit then
    begun = EXACT -- the slots hold one limit's debt alone
  end
  local is_first = gcra_debt_at(debt, since, limit, tick, at) == 0
  local is_steady = fastest <= limit
  local units
  debt, since, fastest, units =
    gcra_admit(debt, since, fastest, limit, capacity, window, ticks, tick, buckets, at, cost)
  if cost > 0 then
    if is_first and is_steady then
      begun, before, newest = at, 0, floor(at / (debt_slots_width(ticks, buckets) * tick))
      fill_slots(base, buckets, 0, buckets, 0)
    end
    if begun ~= EXACT then
      before, newest =
        debt_slots_record(before, newest, base, limit, capacity, ticks, tick, buckets, at, units)
    end
  end
  return debt, since, fastest, begun, before, newest, units
end

local function debt_slots_release(
  debt, since, fastest, begun, before, newest, base, limit, capacity, window, ticks, tick, buckets,
  now, charged_at, charged, units
)
  if fastest ~= 0 and fastest ~= limit then
    begun = EXACT
  end
  local instant = max(now, since)
  local owed = gcra_debt_at(debt, since, limit, tick, instant)
  local given
  debt, since, fastest, given = gcra_release(
    debt, since, fastest, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
  )
  local slot = floor(charged_at / (debt_slots_width(ticks, buckets) * tick))
  if charged_at >= begun and slot <= newest and slot > newest - buckets then
    fill_slots(base, buckets, slot, 1, max(0, read_slot(base, buckets, slot) - units))
    local left = debt_slots_recount(before, newest, base, limit, ticks, tick, buckets, instant)
    if left < debt then
      debt, since, given = left, instant, min(units, (owed - left) / ticks)
    end
  end
  return debt, since, fastest, begun, before, newest, given
end
