-- Runs one operation on one key under a list of policies. lua/README.md is the contract: argument, state, reply.
-- Composed for each list of shapes: a line that begins with --@each is repeated for every policy, with --@ring for
-- those with a ring; with --@rings, --@buckets or --@slots it is there if any policy has them. Words in @{braces} and
-- constants in CAPITALS are filled in.

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

-- What cannot be read is dropped, or the call would fail for ever. What a plain decision needs lies together: what is
-- further in front is read where a place ahead or a bar is known of, or where it changes.
local exists = #fixed == @{fixed}
local broken = not exists and (#fixed > 0 or type(fixed) == 'table')
local whole = op ~= CONSUME and op ~= PEEK
local epoch, held, blocked, last, born, version = 0, 0, 0, 0, 0, 0
local expires, barred, written, @{cells} = 0, 0, 0, @{zeros}
if exists then
  expires, barred, written, @{cells} = unpack('<ddd@{cell_formats}', fixed, @{hot_bytes} + 1)
  latest = max(written, barred)
  broken = not (written >= 0 and written <= EXACT and written % 1 == 0 and expires >= 0 and expires <= NEVER)
    or not (barred >= 0 and barred <= written + FAR)
  --@each broken = broken or not ($sane)
  --@rings broken = broken or call('STRLEN', key) ~= @{length}
  if not broken and (whole or barred > now) then
    whole = true
    epoch, held, blocked, last, born = unpack('<ddddd', fixed)
    version = unpack('<d', fixed, @{version} + 1)
    broken = not (held >= 0 and held % 1 == 0 and blocked >= 0 and blocked % 1 == 0 and last >= 0 and last % 1 == 0)
      or not (epoch >= 0 and epoch <= EXACT and version >= 0 and version <= EXACT)
      or not (born >= 0 and born <= written and born % 1 == 0)
      or barred ~= max(max(held, blocked), last)
    latest = max(written, last)
  end
  -- A clock that was set back: time stands still while it is behind by less than a window; by more, begin anew.
  if not broken and written > now and written - now < @{longest} then
    now = written
  end
end
if broken or written > now then
  call('DEL', key)
  exists = false
  epoch, held, blocked, last, born, version = 0, 0, 0, 0, 0, 0
  expires, barred, written, @{cells} = 0, 0, 0, @{zeros}
end
if not exists then
  whole, latest = true, 0
  --@slots fixed = string.rep('\0', @{fixed})
end

local open = max(max(now, held), blocked)
local writes, begun, reset = false, exists, nil
local reply, booking = '', ''
-- Units of a correction that took effect under every policy, and under one of them.
local effect, units = 0, 0
-- Equal calls are made one after the other. A denial changes nothing, so that those after it are the same.
local answers = count > 1 and {}
for call_number = 1, count do
  local at, amount, reason, binding = open, 0, 0, 0
  --@each local earliest_$i, remaining_$i, reset_$i = open, 0, now
  if op == CONSUME or op == PEEK or op == BOOK then
    if cost > 0 then
      local from = max(open, last)
      at = from
      --@each earliest_$i = $f_earliest($state, $numbers, from, cost)
      --@each if earliest_$i > at then at, binding = earliest_$i, $i - 1 end
    end
    if at == HUGE then
      reason = COST
    elseif blocked > now then
      reason = BLOCKED
    elseif at > now + span then
      reason = held > now and HELD or LIMIT
    elseif cost > 0 and op ~= PEEK then
      writes, amount = true, cost
    end
  elseif op == REFUND then
    writes, at, amount = exists, now, -cost
  elseif op == CHARGE then
    writes, at, amount = true, max(now, last), cost
  elseif op == RELEASE then
    local charged_at, charged, decided_at = unpack('<ddd', argument, rest)
    -- What lies in a state that began after the charge was decided is others'.
    if exists and decided_at >= born and decided_at <= written then
      writes, version, effect = true, nonce, cost
      --@each $cells, units = $f_release($state, $numbers, max(now, last), charged_at, charged, cost) effect = min(effect, units)
    end
  elseif op == BLOCK then
    writes, blocked = true, now + span
  elseif op == HOLD then
    writes, held = true, max(held, now + span)
  elseif op == RESET then
    call('DEL', key)
    return ''
  else
    local booked_epoch, booked_version = unpack('<dd', argument, rest)
    local stands = exists and epoch == booked_epoch
    if op == CONFIRM then
      return pack('<d', stands and (open > now and HELD or 0) or LIMIT)
    end
    if stands and version ~= booked_version then
      -- Cancel, where something was written since: the units of the place, which was booked for the instant span.
      writes, version = true, nonce
      --@each $cells = $f_release($state, $numbers, max(now, last), span, cost, cost)
    elseif stands then
      -- Cancel: put back what the booking replaced, the oldest of a slot last. A ring that grew in it keeps its cap.
      local undo = string.sub(argument, rest + 16)
      --@ring local kept_$i = cap_$i
      version, last, @{cells} = unpack('<dd@{cell_formats}', undo)
      --@ring cap_$i = kept_$i
      --@slots for i = #undo - 15, 17 + @{cell_bytes}, -16 do write_bytes((unpack('<d', undo, i)), sub(undo, i + 8, i + 15)) end
      writes, effect = true, 1
    end
  end

  if writes then
    if not begun then
      begun, epoch, born = true, nonce, now
      --@rings call('SET', key, fixed, 'PX', '60000')
    end
    if amount ~= 0 then
      if op == BOOK and at > now then
        booking = pack('<dd@{cell_formats}', version, last, @{cells})
        replaced = {}
      end
      version = nonce
      if op == CHARGE or op == REFUND then
        effect = cost
        --@each $cells, units = $f_admit($state, $numbers, at, amount) effect = min(effect, units)
      else
        --@each $cells = $f_admit($state, $numbers, at, amount)
      end
      if amount > 0 then
        latest = max(latest, at)
        if whole then
          last = at
        end
      end
      if replaced then
        booking = pack('<dd', epoch, version) .. booking .. table.concat(replaced)
      end
    end
  end

  -- How the key stands. While it is barred or places ahead are booked nothing is left, and the first moment to tell of
  -- is their end.
  reset = open
  local seen = max(open, last)
  --@each remaining_$i, reset_$i = $f_view($state, $numbers, seen)
  --@each if seen > now then remaining_$i = 0 end
  --@each reset = max(reset, reset_$i)
  if op > BOOK then
    reply = pack('<ddd', broken and 1 or 0, now, effect)
  elseif reason == 0 and at <= now then
    reply = pack('<dd@{view_formats}', broken and 1 or 0, now, @{view})
  else
    local remaining = HUGE
    --@each if remaining_$i < remaining and reason == 0 then binding = $i - 1 end remaining = min(remaining, remaining_$i)
    reply = pack('<ddddddd', broken and 3 or 2, now, at, reason, binding, remaining, reset)@{parts}
  end
  if answers then
    answers[call_number] = reply
  end
  if reason ~= 0 then
    break
  end
end
if answers then
  reply = table.concat(answers)
end

-- The key has to outlive the last moment that matters, also to calls with the slowest limits known. Its time to live
-- is set for a window more than that, and then left alone until less is left than is needed. A denied call that tells
-- of a later moment than any write did, under a limit slower than theirs, makes the key live until then.
if writes or exists then
  if whole then
    barred = max(max(held, blocked), last)
  end
  local needed = max(reset, barred)
  if op < CONFIRM and #argument >= rest then
    local @{slowest} = unpack('<@{slowest_formats}', argument, rest)
    local _, drained
    --@each _, drained = $f_view($state, $slowest, max(open, last)) needed = max(needed, drained)
  end
  needed = needed + (clock < 0 and 1000000 or 3600000000)
  local ttl
  if needed > expires then
    expires = min(needed + @{longest}, NEVER)
    ttl = string.format('%.0f', ceil((expires - now) / 1000))
  end
  local offset, bytes
  if not writes then
    offset, bytes = '@{hot_bytes}', ttl and pack('<d', expires)
  elseif whole then
    offset = '0'
    bytes = pack('<dddddddd@{cell_formats}d', epoch, held, blocked, last, born, expires, barred, now, @{cells}, version)
  elseif ttl then
    offset, bytes = '@{hot_bytes}', pack('<ddd@{cell_formats}d', expires, barred, now, @{cells}, version)
  else
    offset, bytes = '@{hottest}', pack('<d@{cell_formats}d', now, @{cells}, version)
  end
  --@buckets if writes then bytes = bytes .. changed_slots(exists or @{has_rings}) end
  if not (exists or @{has_rings}) then
    if not call('SET', key, bytes, 'PX', ttl, 'NX') then
      call('SET', key, bytes, 'PX', ttl) -- MGET says nothing of a key of another type
      reply = pack('<d', 1) .. string.sub(reply, 9)
    end
  elseif bytes then
    call('SETRANGE', key, offset, bytes)
    if ttl then
      call('PEXPIRE', key, ttl)
    end
  end
end
--@slots if unsound then call('DEL', key) end
--@slots if unsound and not broken then reply = pack('<d', 1 + unpack('<d', reply)) .. sub(reply, 9) end
return reply .. booking
