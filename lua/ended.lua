-- In the script of a limiter that reserves, before a call is decided: reads what a call that reserves brings, and gives back what the
-- key's reservations hold that have ended, each as of its end, the earliest first. Of each the list behind the slots has 48 bytes: id,
-- the instant of the charge, its cost, the units that stay charged, the end, and the units that took effect when it was settled: HUGE
-- while it is open, and -HUGE where it has ended unsettled, of which such a mark stays for KNOWN. The mark of one that was settled goes
-- at its end. One of no cost stays for KNOWN after it was settled late. Part of the engine, whose variables it sets.
-- Of a call that reserves: its number, how long, what stays charged at the end, and how many may be open.
local id, lasts, stays, most
if op == RESERVE then
  op = CONSUME
  id, lasts, stays, most, rest = unpack('<dddd', argument, rest)
elseif op == CHANGE then
  most = unpack('<d', argument, rest + 48)
end
-- The bytes of the entry that this call writes, and where in the list; how long the key must live for it.
local entry, entry_at, lives_until = nil, 0, 0
-- Of a change: what became of the reservation, and its end.
local outcome, until_end
local has_ended = op ~= RESET and op ~= CONFIRM and next_end > 0 and (next_end <= now or most and listed >= 192 * most)
-- The call is sent once more, with boundaries around its instant, before anything is written.
--@for each calendar if has_ended and now >= ends_@{i} and (now < before_@{i} or now >= after_@{i} or ends_@{i} + @{half} > after_@{i}) then return redis.error_reply('OUTSIDE ' .. string.format('%.0f', now)) end
-- A decision gives back, and tries, on a copy of the state, which is made with its first change. It is written where the call is
-- charged and dropped otherwise: a peek and a denial write nothing, and need no permission to write.
local on_copy
copy = nil
if op <= COMMIT and next_end > 0 then
  on_copy = function(command, _, from, bytes)
    if command == 'GETRANGE' and not copy then
      return redis.call(command, key, from, bytes)
    end
    copy = copy or redis.call('GET', key)
    if command == 'GETRANGE' then
      return string.sub(copy, from + 1, bytes < 0 and bytes or bytes + 1)
    elseif command == 'SETRANGE' then
      copy = string.sub(copy, 1, from) .. bytes .. string.sub(copy, from + #bytes + 1)
    elseif command == 'SET' then
      copy = from
    end
    return copy
  end
  call = on_copy
end
if has_ended then
  local from = @{length} - listed
  local list, ended, all, left = call('GETRANGE', key, from, from + listed - 1), {}, {}, 0
  for place = 1, #list - 47, 48 do
    local charged, _, ends, done = unpack('<dddd', list, place + 16)
    if done == HUGE and ends <= now then
      ended[#ended + 1] = { place, ends }
      done = -HUGE
    end
    local is_kept = (done == -HUGE and ends + KNOWN or ends) > now
    all[#all + 1] = { place, ends, done, charged, is_kept }
    left = left + (is_kept and 1 or 0)
  end
  table.sort(ended, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[1] < b[1] end)
  local _
  for _, one in ipairs(ended) do
    local charged_at, charged, stay = unpack('<ddd', list, one[1] + 8)
    local at = max(one[2], last)
    -- A release of nothing would still move the state to its instant, and round it.
    if charged_at >= born and charged > stay then
      --@for each policy @{cells}, _ = @{algorithm}_release(@{state}, @{numbers}, at, charged_at, charged, charged - stay)
    end
  end
  -- Marks whose time is over are forgotten, and the oldest of too many.
  local surplus = most and left >= 4 * most and left - 3 * most or 0
  local bytes, soonest, latest_mark = {}, HUGE, 0
  for _, one in ipairs(all) do
    local place, ends, done, charged, is_kept = one[1], one[2], one[3], one[4], one[5]
    if is_kept and (done == HUGE or surplus <= 0) then
      bytes[#bytes + 1] = string.sub(list, place, place + 39) .. pack('<d', done)
      if done == HUGE then
        soonest = min(soonest, ends)
      elseif done ~= -HUGE then
        latest_mark = max(latest_mark, ends)
      end
    else
      surplus = is_kept and surplus - 1 or surplus
      if done == -HUGE then
        unsettled_until = max(unsettled_until, ends)
      elseif charged > 0 then
        settled_until = max(settled_until, ends)
      end
    end
  end
  reserved = reserved - #ended
  if next_end <= now then
    -- One that has ended unsettled need not be known where no other was settled.
    next_end = soonest < HUGE and soonest or latest_mark > 0 and latest_mark or settled_until + KNOWN
    if next_end <= now then
      bytes, next_end, settled_until, unsettled_until = {}, 0, 0, 0
    end
  end
  local behind_list = call('GETRANGE', key, from + listed, -1)
  call('SET', key, call('GETRANGE', key, 0, from - 1) .. table.concat(bytes) .. behind_list, 'KEEPTTL')
  writes, version, listed = op > COMMIT, nonce, 48 * #bytes
end
-- As many are open as may be: it is asked how the key stands.
local is_full = id and reserved >= most
if is_full then
  op = PEEK
end
