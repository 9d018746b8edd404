-- Sliding log; twin of algorithms/sliding-log.ts. Instants lie in a ring of slots, one a unit, 8 bytes each: entry
-- number i in slot i mod cap. Numbers only grow; what was dropped stays until it is written over.
-- needs: slots
-- cells: head, size, cap
-- slots: cap
-- valid: size <= cap
--   head  number of the next entry
--   size  entries that count, the newest ones
--   cap   slots there are; doubled when full, up to the limit, and from there on by an eighth of it

-- Changes the ring that holds a log's instants from former to cap slots, and keeps the newest entries that fit. An entry's
-- slot is its number modulo cap, so the entries move. The Redis string is set anew, because appending to it would make Redis reserve twice its length. Each byte is read, put
-- together and set once: a large log keeps other clients waiting for as long as its bytes are copied.
local function sliding_log_resize(head, size, cap, base, former)
  local kept = min(former, cap)
  local oldest, blank = head - kept, pack('<d', 0)
  local start = oldest % cap
  local round = max(0, start + kept - cap)
  local left, middle, right
  if round > 0 then
    left, right = read_slots(base, former, head - round, round), read_slots(base, former, oldest, kept - round)
    middle = rep(blank, cap - kept)
  else
    middle = read_slots(base, former, oldest, kept)
    left, right = rep(blank, start), rep(blank, cap - kept - start)
  end
  local header, behind = call('GETRANGE', key, 0, base - 1), call('GETRANGE', key, base + former * 8, -1)
  call('SET', key, header .. left .. middle .. right .. behind, 'KEEPTTL')
  near, filled = '', nil
end

-- The instant in microseconds of the i-th newest entry of the log, where 0 is the newest one; -HUGE, which is before all
-- instants, if the log has no such entry.
local function sliding_log_at(head, size, cap, base, i)
  if i >= size then
    return -HUGE
  end
  return read_slot(base, cap, head - 1 - i)
end

-- The number of entries that are later than instant. Entries are in order of time, and few leave the window between two
-- calls, so the fourth oldest is compared first, which is read together with its neighbours. It says in which part of the
-- log the border lies; a binary search finds the border there.
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

-- The earliest instant, in microseconds and not before `from`, at which cost units fit: when the entry with limit - cost
-- newer ones has left the window, since only those then count. HUGE if cost is more than the limit and never fits.
local function sliding_log_earliest(
  head, size, cap, base, limit, capacity, window, ticks, tick, buckets, from, cost
)
  if cost > limit then
    return HUGE
  end
  return max(from, sliding_log_at(head, size, cap, base, limit - cost) + window)
end

-- Removes n entries of the log: the i-th newest one (0 is the newest) and the n - 1 before it in time. The i newer entries
-- move down to close the gap. Returns the log's cells (head, size, cap) and n.
local function sliding_log_remove(head, size, cap, base, i, n)
  if n > 0 and i > 0 then
    move_slots(base, cap, head - i, i, head - i - n)
  end
  return head - n, size - n, cap, n
end

-- Gives back up to cost units: removes the newest entries that still count at the instant at. Entries later than at are
-- units booked for calls that wait, and stay. Returns the log's cells (head, size, cap) and how many units were given back.
local function sliding_log_refund(head, size, cap, base, window, at, cost)
  local booked = sliding_log_newer_than(head, size, cap, base, at)
  local live = sliding_log_newer_than(head, size, cap, base, at - window)
  return sliding_log_remove(head, size, cap, base, booked, min(cost, live - booked))
end

-- Adds cost entries at the instant at, at most as many as make twice the limit; a cost below 0 gives units back. A ring
-- without room grows first. Returns the cells and how many units took effect.
local function sliding_log_admit(
  head, size, cap, base, limit, capacity, window, ticks, tick, buckets, at, cost
)
  if cost < 0 then
    return sliding_log_refund(head, size, cap, base, window, at, -cost)
  end
  local live = sliding_log_newer_than(head, size, cap, base, at - window)
  local pushed = min(cost, max(0, 2 * limit - live))
  if live + pushed > cap then
    local more = cap < limit and min(limit, max(4, 2 * cap)) or cap + ceil(limit / 8)
    local wanted = max(live + pushed, min(more, 2 * limit))
    sliding_log_resize(head, size, wanted, base, cap)
    cap = wanted
  end
  fill_slots(base, cap, head, pushed, at)
  return head + pushed, live + pushed, cap, pushed
end

-- The units that remain at the instant now, and the instant in microseconds at which all units are available again: when
-- the newest entry leaves the window, or now if no entry counts.
local function sliding_log_view(head, size, cap, base, limit, capacity, window, ticks, tick, buckets, now)
  local live = sliding_log_newer_than(head, size, cap, base, now - window)
  if live == 0 then
    return limit, now
  end
  return max(0, limit - live), read_slot(base, cap, head - 1) + window
end

-- Decides a call in one pass, if few entries have left the window since the last one and the new ones fit behind the
-- others without growing: whether cost fits at now, then what admit and view return, and the place and bytes of the
-- slots to write. An entry that can be no instant does not fit, which leaves the call to the engine. The composer puts
-- this body where it is called.
local function sliding_log_take(head, size, cap, base, limit, capacity, window, ticks, tick, buckets, now, cost)
  local first, left = size > 0 and (head - size) % cap or 0, 0
  local few = min(min(size, 4), cap - first)
  local oldest = few > 0 and call('GETRANGE', key, base + first * 8, base + (first + few) * 8 - 1) or ''
  local entry = #oldest == few * 8 and 0 or HUGE
  while left < few and entry <= now - window do
    entry = unpack('<d', oldest, left * 8 + 1)
    if entry <= now - window then left = left + 1 end
    if not (entry >= 0 and entry <= latest and entry % 1 == 0) then entry = HUGE end
  end
  local live = size - left
  local fits = entry < HUGE and (left < few or few == size) and live + cost <= min(limit, cap) and head % cap + cost <= cap
  return fits, head + cost, live + cost, cap, limit - live - cost, now + window, base + head % cap * 8,
    fits and rep(pack('<d', now), cost)
end

-- Gives back up to units of one earlier charge: removes entries made at exactly its instant, charged_at. Newer entries have
-- to move for that, so only the newest MOST_ENTRIES are considered. Returns the log's cells and how many units were given
-- back: 0 if the charge has left the window and no longer counts.
local function sliding_log_release(
  head, size, cap, base, limit, capacity, window, ticks, tick, buckets, now, charged_at, charged, units
)
  if charged_at <= now - window then
    return head, size, cap, 0
  end
  local newer = sliding_log_newer_than(head, size, cap, base, charged_at)
  local last = min(sliding_log_newer_than(head, size, cap, base, charged_at - 1), MOST_ENTRIES)
  return sliding_log_remove(head, size, cap, base, newer, max(0, min(units, last - newer)))
end
