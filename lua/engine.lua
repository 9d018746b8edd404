-- Runs one operation on one key under a list of policies. lua/README.md is the contract: argument, state, reply.
-- The composer fills in words in @{braces} and constants in capitals, and repeats or drops lines that begin with --@for.

if not (cost >= 0 and cost <= 2147483648 and cost % 1 == 0) then
  return redis.error_reply('ERR cost must be a whole number from 0 to 2^31')
end
local now = clock
if clock < 0 then
  if not time then
    local parts = call('TIME')
    time = parts[1] * 1000000 + parts[2]
  end
  now = time
end
-- The instant that the key's time to live counts from, also while time stands still.
local clock_now = now

-- A server that refuses to read says nothing of the state.
if type(fixed) == 'table' and not string.find(fixed.err, 'WRONGTYPE', 1, true) then
  return fixed
end
-- Unreadable state is discarded; otherwise every later call on the key would fail.
local exists = #fixed >= @{fixed}
local broken = not exists and (#fixed > 0 or type(fixed) == 'table')
local epoch, held, blocked, last = 0, 0, 0, 0
local born, expires, restricted, written, @{all_cells}, version = 0, 0, 0, 0, @{zeros}, 0
-- The bytes behind the slots: epoch, held, blocked and last of a key that a block, a hold or a booking has restricted, then two
-- numbers if refusals of the key are counted.
local behind, refused = '', ''
if exists then
  born, expires, restricted, written, @{all_cells}, version = unpack('<dddd@{cell_formats}d', fixed)
  latest = max(written, restricted)
  broken = not (written >= 0 and written <= EXACT and written % 1 == 0 and expires >= 0 and expires <= NEVER)
    or not (born >= 0 and born <= written and born % 1 == 0 and version >= 0 and version <= EXACT)
    or not (restricted >= 0 and restricted <= written + FAR)
  --@for each policy broken = broken or not (@{sane})
  --@reserving broken = broken or not (listed >= 0 and listed % 48 == 0 and reserved >= 0 and reserved * 48 <= listed and reserved % 1 == 0)
  --@reserving broken = broken or not (next_end >= 0 and next_end <= EXACT and listed_since >= 0 and listed_since <= written and settled_until >= 0 and settled_until <= EXACT and unsettled_until >= 0 and unsettled_until <= EXACT)
  if not broken then
    --@for any partial local more = call('STRLEN', key) - (@{length})
    behind = @{behind}
    local header = restricted > 0 and 32 or 0
    refused = header > 0 and string.sub(behind, 33) or behind
    broken = #behind ~= header and #behind ~= header + 16
    --@for any partial broken = broken or more < 0
  end
  if not broken and restricted > 0 then
    epoch, held, blocked, last = unpack('<dddd', behind)
    broken = not (held >= 0 and held % 1 == 0 and blocked >= 0 and blocked % 1 == 0 and last >= 0 and last % 1 == 0)
      or not (epoch >= 1 and epoch <= EXACT) or restricted ~= max(max(held, blocked), max(last, 1))
    latest = max(written, last)
  end
  -- The clock was set back: while it is behind by less than a window, time stands still; by more, the state is discarded. The
  -- window of a calendar has a stored end: it makes no time stand still, and what was consumed in it is kept.
  if not broken and written > now and written - now < @{longest_standstill} then
    now = written
  end
  -- Such a state, and its list of reservations, began no later than now: what is charged from now on can be given back. What was
  -- charged before the clock was set back is no booking ahead, and what other policies have counted is cleared.
  --@for any calendar if written > now then born, last = min(born, now), last <= written and 0 or last end
  --@reserving --@for any calendar if written > now then listed_since = min(listed_since, now) end
  --@for each beside_calendar if not broken and written > now and written - now < @{discarded_from} then @{cells} = @{cleared} end
  --@for any beside_calendar if not broken and written > now and written - now < @{discarded_from} then epoch, last, written, latest = epoch > 0 and nonce or 0, 0, now, now end
end
if broken or written > now and written - now >= @{discarded_from} then
  @{discard}
  broken = broken and op ~= PEEK
  exists, behind, refused, epoch, held, blocked, last = false, '', '', 0, 0, 0, 0
  born, expires, restricted, written, @{all_cells}, version = 0, 0, 0, 0, @{zeros}, 0
end
if not exists then
  latest = 0
  --@for any slotted fixed = string.rep('\0', @{fixed})
end

local writes, begun, renewed, reset = false, exists, false, nil
--@reserving @{ended}
local open = max(max(now, held), blocked)
local reply, booking = '', ''
-- Units of a correction that took effect under every policy, and under one of them; of a charge with a span, what counts then.
local effect, units, counts = 0, 0, ''
-- Equal calls are made one after the other. A denial that is not counted changes nothing: those after it are denied too.
local answers = count > 1 and {}
-- If a refusal is counted: how many there were, and the instant at which that is forgotten.
--@for any penalty local refusals, forgotten
for call_number = 1, count do
  local at, amount, reason, binding = open, 0, 0, 0
  --@for each policy local earliest_@{i}, remaining_@{i}, reset_@{i} = open, 0, now
  if op <= COMMIT then
    if cost > 0 then
      local from = max(open, last)
      at = from
      --@for each policy earliest_@{i} = @{algorithm}_earliest(@{state}, @{numbers}, from, cost)
      --@for each policy if earliest_@{i} > at then at, binding = earliest_@{i}, @{i} - 1 end
    end
    if at == HUGE then
      reason = COST
    elseif blocked > now then
      reason = BLOCKED
    elseif at > now + span then
      reason = held > now and HELD or LIMIT
      @{penalty}
    elseif cost > 0 and op ~= PEEK and op ~= TRY then
      writes, amount = true, cost
    end
  elseif op == REFUND then
    writes, at, amount = exists, now, -cost
  elseif op == CHARGE then
    writes, at, amount = true, max(now, last), cost
  elseif op == RELEASE then
    local charged_at, charged, decided_at = unpack('<ddd', argument, rest)
    -- State that began after the charge was decided holds only the units of other charges.
    if exists and decided_at >= born and decided_at <= written then
      writes, version, effect = true, nonce, cost
      --@for each policy @{cells}, units = @{algorithm}_release(@{state}, @{numbers}, max(now, last), charged_at, charged, cost) effect = min(effect, units)
    end
  elseif op == BLOCK then
    -- The block of a penalty, whose cost is 1, never shortens another one. One of no length clears the refusals that were counted.
    if cost > 0 and span == 0 and refused ~= '' then
      refused = string.rep('\0', 16)
    end
    writes, blocked = exists or span > 0, max(now + span, cost > 0 and blocked or 0)
  elseif op == HOLD then
    writes, held = true, max(held, now + span)
  --@reserving @{change}
  elseif op == RESET then
    if alone then
      call('DEL', key)
    else
      dropped = dropped or {}
      dropped[#dropped + 1] = key
    end
    return ''
  else
    local booked_epoch, booked_version = unpack('<dd', argument, rest)
    -- A charge at now may have no epoch. One that was decided after the last write is of another state.
    local stands = exists and (epoch == booked_epoch or booked_epoch == 0)
      and (booked_epoch ~= 0 or op == CONFIRM or unpack('<d', argument, rest + 16) <= written)
    if op == CONFIRM then
      return pack('<d', stands and (open > now and HELD or 0) or LIMIT)
    end
    if stands and version ~= booked_version then
      -- Cancel after a later write: release the units of the booking, which was made for the instant span, unless the key has been
      -- full since it was made.
      local decided_at = unpack('<d', argument, rest + 16)
      if decided_at >= born and decided_at <= written then
        writes, version = true, nonce
        --@for each policy @{cells} = @{algorithm}_release(@{state}, @{numbers}, max(now, last), span, cost, cost)
      end
    elseif stands then
      -- Cancel with no later write: restore what the booking replaced, the oldest value of a slot last. A ring that the
      -- booking enlarged gets its former capacity, because earlier bookings know by its bytes what they replaced.
      local undo = string.sub(argument, rest + 24)
      --@for any slotted for i = #undo - 15, 17 + @{cell_bytes}, -16 do write_bytes((unpack('<d', undo, i)), sub(undo, i + 8, i + 15)) end
      --@for each ring local grown_@{i} = cap_@{i}
      version, last, @{all_cells} = unpack('<dd@{cell_formats}', undo)
      --@for each ring if cap_@{i} < grown_@{i} then @{algorithm}_resize(@{state}, grown_@{i}) end
      writes, effect = true, 1
    end
  end

  if writes then
    --@reserving call = redis.call
    -- The call is sent once more, with boundaries around its instant: these have an end for a window that begins there.
    --@for each calendar if amount > 0 and at >= ends_@{i} and (at < before_@{i} or at >= after_@{i} or ends_@{i} + @{half} > after_@{i}) then return redis.error_reply('OUTSIDE ' .. string.format('%.0f', at)) end
    --@reserving if copy then call('SET', key, copy, 'KEEPTTL') copy = nil end
    if not begun then
      begun = true
      --@for any ring call('SET', key, fixed, 'PX', '60000')
    end
    if amount ~= 0 then
      if op == COMMIT or op == BOOK and at > now then
        if op == BOOK and epoch == 0 then epoch = nonce end
        booking = pack('<dd@{cell_formats}', version, last, @{all_cells})
        replaced = {}
      end
      version = nonce
      -- A key that is full again begins anew with its next charge, as one whose state has expired.
      if amount > 0 and call_number == 1 and last <= now then
        renewed = true
        --@for each policy if exists and renewed then local _, full_at = @{algorithm}_view(@{state}, @{numbers}, now) renewed = full_at <= now end
        born = renewed and now or born
        --@for each drained if renewed then fastest_@{i} = limit_@{i} end
      end
      if op == CHARGE or op == REFUND then
        effect = cost
        --@for each policy @{cells}, units = @{algorithm}_admit(@{state}, @{numbers}, at, amount) effect = min(effect, units) if span > 0 then local left, full_at = @{algorithm}_view(@{state}, @{numbers}, at) counts = counts .. pack('<ddd', capacity_@{i} - left, units + (span - 1), full_at) end
      else
        --@for each policy @{cells} = @{algorithm}_admit(@{state}, @{numbers}, at, amount)
      end
      if amount > 0 then
        latest = max(latest, at)
        if at > now then
          last = at
        end
      end
      if replaced then
        booking = pack('<ddd', epoch, version, now) .. booking .. table.concat(replaced)
      end
    end
    if version == 0 then version = nonce end
  end

  --@reserving if id and amount > 0 then
  --@reserving entry_at, lives_until = listed, now + lasts
  --@reserving entry = pack('<dddddd', id, max(at, written), cost, stays, lives_until, HUGE)
  --@reserving if next_end == 0 then listed_since = now end
  --@reserving next_end = next_end > 0 and min(next_end, lives_until) or lives_until
  --@reserving listed, reserved = listed + 48, reserved + 1
  --@reserving end
  -- The state of the key after the call. Until blocks, holds and bookings end, remaining is 0; the state is viewed as it
  -- will be then. What is used counts now, or where a place is booked at its instant.
  reset = open
  local seen, used = max(open, last), ''
  local is_short = op > COMMIT or reason == 0 and at <= now and cost > 0
  --@for each policy remaining_@{i}, reset_@{i} = @{algorithm}_view(@{state}, @{numbers}, seen)
  --@for each policy if not is_short then used = used .. pack('<d', capacity_@{i} - (open > max(now, last) and @{algorithm}_view(@{state}, @{numbers}, max(now, last)) or remaining_@{i})) end
  --@for each policy if not is_short and (seen > now or remaining_@{i} < 0) then remaining_@{i} = 0 end
  --@for each policy reset = max(reset, reset_@{i})
  --@for any penalty if reason == LIMIT and refusals then forgotten = reset + @{forgetAfter} end
  --@reserving local held_bytes, unit_at = '', HUGE
  --@reserving @{holding}
  if op > COMMIT then
    reply = pack('<ddd', broken and 1 or 0, now, effect) .. counts
    --@reserving if outcome then reply = reply .. pack('<dd', outcome, until_end) end
    --@reserving if entry and #entry == 40 then entry = entry .. pack('<d', effect) end
  elseif is_short then
    reply = pack('<dd@{view_formats}', broken and 1 or 0, now, @{view})
  else
    local remaining, next_unit_at = HUGE, at
    --@for each policy if remaining_@{i} < remaining and reason == 0 then binding = @{i} - 1 end remaining = min(remaining, remaining_@{i})
    if reason ~= 0 and remaining + 1 ~= cost then
      next_unit_at = seen
      --@for each policy next_unit_at = max(next_unit_at, @{algorithm}_earliest(@{state}, @{numbers}, seen, remaining + 1))
    end
    --@reserving next_unit_at = min(next_unit_at, unit_at)
    -- A caller who waits also waits until a clock that was set back has caught up.
    reply = pack('<ddddddddd', broken and 3 or 2, at > now and clock_now or now, at, reason, binding, remaining, reset, next_unit_at, blocked > now and blocked or 0)@{parts} .. used
  end
  --@reserving if held_bytes ~= '' then reply = pack('<d', unpack('<d', reply) + (is_full and 12 or 4)) .. string.sub(reply, 9) .. held_bytes end
  if answers then
    answers[call_number] = reply
  end
  if @{rest_is_denied} then
    break
  end
end
if answers then
  reply = table.concat(answers)
end

-- The key must outlive the last instant that matters, also under the smallest limits known. Its time to live is set one
-- window longer than that, and extended only once less is left than required. A denied call whose limit is smaller than
-- those of earlier writes may report a later reset; the key then lives until that. A peek writes nothing.
if writes or exists and op ~= PEEK then
  restricted = max(max(held, blocked), last)
  if epoch == 0 and restricted > now then
    epoch = nonce
  end
  -- 0 says that there are none of these; 1 restricts nothing.
  restricted = epoch > 0 and max(restricted, 1) or 0
  local needed = max(reset, restricted)
  if op < CONFIRM and #argument >= rest then
    local @{all_slowest} = unpack('<@{slowest_formats}', argument, rest)
    local _, drained
    --@for each policy _, drained = @{algorithm}_view(@{state}, @{slowest}, max(open, last)) needed = max(needed, drained)
  end
  --@for any penalty if refusals then needed = max(needed, forgotten) end
  --@reserving needed = max(needed, lives_until)
  needed = needed + (clock < 0 and 1000000 or 3600000000)
  local ttl
  if needed > expires then
    expires = min(needed + @{longest}, NEVER)
    ttl = string.format('%.0f', ceil((expires - clock_now) / 1000))
  end
  --@reserving call = redis.call
  -- The latest write stays the latest where the clock was set back.
  --@for any calendar now = max(now, written)
  local offset, bytes = '@{expires_offset}', ttl and pack('<d', expires)
  if writes then
    offset, bytes = '0', pack('<dddd@{cell_formats}d', born, expires, restricted, now, @{all_cells}, version)
  end
  --@for any bucketed if writes then bytes = bytes .. changed_slots(exists or @{has_rings}) end
  if not (exists or @{has_rings}) then
    if not call('SET', key, bytes, 'PX', ttl, 'NX') then
      -- A key of another type, for which MGET returns nothing.
      call('SET', key, bytes, 'PX', ttl)
      reply = pack('<d', 1) .. string.sub(reply, 9)
    end
  elseif bytes then
    -- In this order: if one of the two fails, nothing is charged. A server that has no memory refuses an empty write too.
    if ttl then
      call('SETRANGE', key, '0', '')
      call('PEXPIRE', key, ttl)
    end
    call('SETRANGE', key, offset, bytes)
  end
  --@reserving if entry then call('SETRANGE', key, @{length} - listed + entry_at, entry_at + 48 == listed and entry .. behind or entry) end
  --@for any penalty if refusals then refused = pack('<dd', refusals, forgotten) end
  local rest_now = (epoch > 0 and pack('<dddd', epoch, held, blocked, last) or '') .. refused
  if writes and rest_now ~= behind then
    if #rest_now == #behind then
      call('SETRANGE', key, @{length}, rest_now)
    else
      call('SET', key, call('GETRANGE', key, 0, @{length} - 1) .. rest_now, 'KEEPTTL')
    end
  end
end
--@for any slotted if unsound then @{discard} end
--@for any slotted if unsound and not broken and op ~= PEEK then reply = pack('<d', 1 + unpack('<d', reply)) .. sub(reply, 9) end
--@reserving call = redis.call
return reply .. booking
