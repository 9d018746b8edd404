elseif op == CHANGE then
  -- Settles a reservation at `real` units, or extends it where that is below 0.
  local own, decided_at, real, stay
  own, decided_at, until_end, real, lasts, stay = unpack('<dddddd', argument, rest)
  rest = #argument + 1
  local is_known = next_end > 0 and listed_since <= decided_at
  local charged_at, charged, stays_now, ends, done
  -- Entries are in the order of their charges: twenty are read at a time, the newest first, then by halves; and then all, as those of
  -- charges made after the clock was set back lie behind others.
  local low, high, size = 0, listed, 960
  local start = max(0, high - size)
  while is_known and low < high do
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
  local is_open = ends and ends > now and done == HUGE
  outcome = 1
  if ends and ends > now and not is_open then
    effect, until_end = done, ends
  elseif is_open and real < 0 then
    -- Never to an earlier instant: whoever asks before an end that it had, and finds it gone, takes it for settled.
    outcome, until_end = 0, max(ends, now + lasts)
    stays_now = min(charged, stay < 0 and stays_now or stay)
    entry = pack('<dddddd', own, charged_at, charged, stays_now, until_end, HUGE)
    lives_until, writes, version = until_end, true, nonce
  elseif is_open or not is_known or now >= until_end then
    -- A reservation that is not found is late, if its end has passed or the state that knew it is lost; otherwise it was settled.
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
      reserved, until_end = reserved - 1, ends
      entry = pack('<ddddd', own, charged_at, charged, stays_now, ends)
    end
  end
