-- Sliding log; twin of algorithms/sliding-log.ts. Instants lie in a ring of slots, one a unit, 8 bytes each: entry
-- number i in slot i mod cap. Numbers only grow; what was dropped stays until it is written over.
-- needs: slots
-- cells: head, size, cap
-- slots: cap
-- valid: size <= cap
--   head  number of the next entry
--   size  entries that count, the newest ones
--   cap   slots there are; doubled when full, up to the limit, and from there on by an eighth of it

-- Changes the number of slots of a log's ring from `former` to `cap`, and keeps the newest entries that fit: `head` is the number of
-- the next entry, entry number i lies in slot i mod cap, and `base` is the byte at which the ring begins. The Redis string is set anew,
-- because appending to it would make Redis reserve twice its length.
local function sliding_log_resize(head, size, cap, base, former)
  local kept, blank = min(former, cap), pack('<d', 0)
  local entries = read_slots(base, former, head - kept, kept)
  local before_ring, behind_ring = call('GETRANGE', key, 0, base - 1), call('GETRANGE', key, base + former * 8, -1)
  if cap <= MOST_ENTRIES then
    call('SET', key, before_ring .. rep(blank, cap) .. behind_ring, 'KEEPTTL')
  else
    -- Redis makes a long string faster than Lua joins it. Half as long first: Redis then reserves twice that, which is all of it.
    local ring_ends = base + cap * 8
    local half = max(base, floor((ring_ends + #behind_ring) / 2))
    call('SET', key, before_ring, 'KEEPTTL')
    call('SETRANGE', key, half, '\0')
    call('SETRANGE', key, ring_ends - 8, blank .. behind_ring)
  end
  write_slots(base, cap, head - kept, entries)
end

-- Returns the instant, in microseconds, of the i-th newest entry of the log, where 0 is the newest; -HUGE, which is before all
-- instants, if the log has no such entry. head is the number of the next entry, and entries lie in cap slots that are used in
-- turn.
local function sliding_log_at(head, size, cap, base, i)
  if i >= size then
    return -HUGE
  end
  return read_slot(base, cap, head - 1 - i)
end

-- Returns how many entries of the log are later than `instant`. An entry is the instant of one unit, and entries are in order of
-- time. Few leave the window between two calls, so the border is usually among the four oldest, whose slots are read together:
-- the fourth oldest is compared first, and the border found on its side by binary search.
local function sliding_log_newer_than(head, size, cap, base, instant)
  if size == 0 or sliding_log_at(head, size, cap, base, size - 1) > instant then
    return size
  end
  local least, most = 0, size - 1
  local few = max(0, size - 4)
  if sliding_log_at(head, size, cap, base, few) > instant then
    least = few + 1
  else
    most = few
  end
  while least < most do
    local middle = floor((least + most) / 2)
    if sliding_log_at(head, size, cap, base, middle) > instant then
      least = middle + 1
    else
      most = middle
    end
  end
  return least
end

-- Returns the earliest instant, in microseconds and not before `from`, at which cost units fit; HUGE (never) for a cost above the
-- limit. Each entry is the instant of one unit, and limit - cost of them may still count then. So the entry that has limit - cost
-- newer ones must leave the window first. Without such an entry the cost fits at `from`.
local function sliding_log_earliest(
  head, size, cap, base, limit, capacity, window, window_ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  return max(from, sliding_log_at(head, size, cap, base, limit - cost) + window)
end

-- Removes n entries (each the instant of one unit) from the log's ring, which begins at byte `base`: the i-th newest (0 is the
-- newest) and the n - 1 that are older than that; i + n is at most size. The i newer entries move down to close the gap. Returns
-- what the log is afterwards: head (the number that the entry added next will get), size (its entries), cap (slots of the ring),
-- and n, how many were removed.
local function sliding_log_remove(head, size, cap, base, i, n)
  if n > 0 and i > 0 then
    write_slots(base, cap, head - i - n, read_slots(base, cap, head - i, i))
  end
  return head - n, size - n, cap, n
end

-- Gives back up to cost units: removes the newest entries, one for each unit, that are in the window at the instant `at`. Entries
-- later than that belong to bookings of calls that wait, and stay. Returns head (number of the next entry), size (entries that
-- count), cap (slots of the ring) and how many units were given back.
local function sliding_log_refund(head, size, cap, base, window, at, cost)
  local booked = sliding_log_newer_than(head, size, cap, base, at)
  local live = sliding_log_newer_than(head, size, cap, base, at - window)
  return sliding_log_remove(head, size, cap, base, booked, min(cost, live - booked))
end

-- Charges cost units at the instant `at`, one entry for each, whether they fit or not; a cost below 0 gives units back. No units are
-- added beyond twice the limit, so that forced charges stay bounded. A full ring grows first: to twice its slots, up to limit
-- slots, which is enough for calls that fit; from there on by an eighth of the limit. Returns head (number of the next entry),
-- size (entries in the window), cap (slots of the ring) and how many units took effect.
local function sliding_log_admit(
  head, size, cap, base, limit, capacity, window, window_ticks, tick, buckets, at, cost
)
  if cost < 0 then
    return sliding_log_refund(head, size, cap, base, window, at, -cost)
  end
  local live = sliding_log_newer_than(head, size, cap, base, at - window)
  local pushed = min(cost, max(0, 2 * limit - live))
  if live + pushed > cap then
    local larger = cap < limit and min(limit, max(4, 2 * cap)) or cap + ceil(limit / 8)
    local former = cap
    cap = max(live + pushed, min(larger, 2 * limit))
    sliding_log_resize(head, size, cap, base, former)
  end
  fill_slots(base, cap, head, pushed, at)
  return head + pushed, live + pushed, cap, pushed
end

-- Returns the units that could be spent at now, and the instant, in microseconds, at which all are available again: when the
-- newest entry leaves the window, or now if no entry counts. An entry is the instant of one unit.
local function sliding_log_view(head, size, cap, base, limit, capacity, window, window_ticks, tick, buckets, now)
  local live = sliding_log_newer_than(head, size, cap, base, now - window)
  if live == 0 then
    return limit, now
  end
  return limit - live, read_slot(base, cap, head - 1) + window
end

-- Decides a call at now in one pass, reading at most the four oldest entries, each the instant of one unit, to count those that
-- have left the window: gone. Returns whether cost fits and, valid only if it does: head (number of the next entry), size (entries that
-- count) and cap (slots of the ring) after the charge, the units that remain, the instant at which none counts any more, the byte
-- in the state at which the new entries begin, and their bytes. Returns false also where more entries may have left, where the
-- new entries do not fit behind the others in the ring, and for a corrupt entry: the engine then decides the call. The composer of
-- scripts puts this body where it is called.
local function sliding_log_take(head, size, cap, base, limit, capacity, window, window_ticks, tick, buckets, now, cost)
  local oldest, gone = size > 0 and (head - size) % cap or 0, 0
  local few = min(min(size, 4), cap - oldest)
  local bytes_read = few > 0 and call('GETRANGE', key, base + oldest * 8, base + (oldest + few) * 8 - 1) or ''
  -- The entry that was looked at last; HUGE once one is corrupt or missing.
  local entry = #bytes_read == few * 8 and 0 or HUGE
  while gone < few and entry <= now - window do
    entry = unpack('<d', bytes_read, gone * 8 + 1)
    if entry <= now - window then gone = gone + 1 end
    if not (entry >= 0 and entry <= latest and entry % 1 == 0) then entry = HUGE end
  end
  local live = size - gone
  local fits = entry < HUGE and (gone < few or few == size) and live + cost <= min(limit, cap) and head % cap + cost <= cap
  return fits, head + cost, live + cost, cap, limit - live - cost, now + window, base + head % cap * 8,
    fits and rep(pack('<d', now), cost)
end

-- Gives back up to `units` units of an earlier charge: removes entries that were made at exactly its instant, charged_at. Only the
-- newest MOST_ENTRIES entries are searched, because all entries newer than the removed ones have to move. Returns head (number of
-- the next entry), size (entries that count), cap (slots of the ring) and how many units were given back: 0 if the charge has
-- left the window.
local function sliding_log_release(
  head, size, cap, base, limit, capacity, window, window_ticks, tick, buckets, now, charged_at, charged, units
)
  if charged_at <= now - window then
    return head, size, cap, 0
  end
  local newer = sliding_log_newer_than(head, size, cap, base, charged_at)
  local newer_or_equal = sliding_log_newer_than(head, size, cap, base, charged_at - 1)
  local of_the_charge = min(newer_or_equal, MOST_ENTRIES) - newer
  return sliding_log_remove(head, size, cap, base, newer, max(0, min(units, of_the_charge)))
end
