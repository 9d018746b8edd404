elseif op == CHANGE then
  -- Settles a reservation at `real` units, or extends it where that is below 0.
  local own, decided_at, real, stay
  own, decided_at, until_end, real, lasts, stay = unpack('<dddddd', argument, rest)
  rest = #argument + 1
  local charged_at, charged, stays_now, ends, done
  -- Entries are in the order of their charges: twenty are read at a time, the newest first, then by halves; and then all, as that of a
  -- charge made after the clock was set back, and of a late settling, lie behind others.
  local low, high, size = 0, listed, 960
  local start = max(0, high - size)
  while low < high do
    local first = @{length} - listed + start
    local list = call('GETRANGE', key, first, first + min(size, high - start) - 1)
    local place = string.find(list, pack('<d', own), 1, true)
    while place and place % 48 ~= 1 do
      place = string.find(list, pack('<d', own), place + 1, true)
    end
    if place and place + 47 <= #list then
      charged_at, charged, stays_now, ends, done = unpack('<ddddd', list, place + 8)
      entry_at, high = start + place - 1, 0
    elseif start > low and #list > 15 and unpack('<d', list, 9) >= decided_at then
      high = start
    else
      low = start + size
    end
    start = low + floor((high - low) / 1920) * 960
    if low >= high and high > 0 and size < listed then
      low, high, start, size = 0, listed, 0, listed
    end
  end
  local is_open, is_ended = done == HUGE, done == -HUGE
  outcome = 1
  if ends and not is_open and not is_ended then
    outcome, effect = charged > 0 and 1 or 2, charged > 0 and ends <= now and 0 or done
  elseif is_open and real < 0 then
    -- Never to an earlier instant: whoever asks before an end that it had, and finds it gone, may take it for settled.
    outcome, until_end = 0, max(ends, now + lasts)
    stays_now = min(charged, stay < 0 and stays_now or stay)
    entry = pack('<dddddd', own, charged_at, charged, stays_now, until_end, HUGE)
    lives_until, writes, version = until_end, true, nonce
  elseif ends or until_end <= unsettled_until or until_end > settled_until or listed_since > decided_at then
    -- One that is not found, and whose mark may be gone, was settled. Otherwise it has ended unsettled, or the state is not that which
    -- knew it: it is late.
    outcome = is_open and 1 or 2
    local difference = real - (is_open and charged or 0)
    if real >= 0 and difference > 0 then
      op, cost, writes, at, amount = CHARGE, difference, true, max(now, last), difference
    elseif is_open then
      writes, version, effect = true, nonce, 0
      if difference < 0 and charged_at >= born then
        effect = -difference
        --@for each policy @{cells}, units = @{algorithm}_release(@{state}, @{numbers}, max(now, last), charged_at, charged, -difference) effect = min(effect, units)
      end
      effect = 0 - effect
    end
    if is_open then
      reserved, lives_until = reserved - 1, ends + KNOWN
      entry = pack('<ddddd', own, charged_at, charged, stays_now, ends)
    elseif real > 0 then
      if not is_ended then
        entry_at, listed, charged_at = listed, listed + 48, max(now, written)
      end
      lives_until = now + KNOWN
      entry = pack('<ddddd', own, charged_at, 0, 0, lives_until)
      if next_end == 0 then listed_since, next_end = now, lives_until end
    end
  end
