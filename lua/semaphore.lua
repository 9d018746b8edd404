-- The permits of a semaphore, and the queue of tickets that wait for one. Runs one operation on one sorted set. It is no
-- algorithm and is sent as it is. A member's score says what the member is; instants are microseconds:
--   below 0               a process, alive until -score
--   from 1, below PLACES  a ticket in the queue, the oldest first
--   from PLACES on        a ticket that holds a permit until score - PLACES
-- ARGV[1] is packed: operation, limit, lease, claim, alive, clock (-1: TIME), wait; then lines of text: the prefix of the
-- channel, the process, tickets. A ticket is 'process:number'. The reply is a digit for each ticket.

local call, format, gmatch, match, sub = redis.call, string.format, string.gmatch, string.match, string.sub
local TAKE, LOOK, RENEW, LEAVE = 1, 2, 3, 4
local UNKNOWN, IN_LINE, INSIDE = '0', '1', '2'
local PLACES = 1099511627776
-- No lease is longer than an hour: a permit that says so was granted before the clock was set back.
local FAR = 3600000000
-- After a loss of data no new permit is granted for this long, so that all holders can renew theirs. The member GRACE, with
-- the score of a process, marks that time.
local GRACE, GRACE_SPAN = 'grace', 700000

local key = KEYS[1]
local op, limit, lease, claim, alive, clock, wait, rest = struct.unpack('<ddddddd', ARGV[1])
if not (limit >= 1 and limit <= 1000000 and lease >= 0 and lease <= FAR and claim >= 0 and claim <= lease) then
  return redis.error_reply('ERR limit and lease of a semaphore are out of bounds')
end
local words = gmatch(sub(ARGV[1], rest), '[^\n]+')
local channel, process = words(), words()
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- Remove what has expired: permits that were not renewed, processes that did not poll. A key of another type is discarded.
if type(redis.pcall('ZREMRANGEBYSCORE', key, PLACES, PLACES + now)) == 'table' then
  call('DEL', key)
end
call('ZREMRANGEBYSCORE', key, format('(%.0f', PLACES + now + FAR), '+inf')
call('ZREMRANGEBYSCORE', key, -now, '(1')

local function score_of(ticket)
  return tonumber(call('ZSCORE', key, ticket) or 0)
end

local function enter(ticket, span)
  call('ZADD', key, PLACES + now + span, ticket)
end

local function free()
  return limit - call('ZCOUNT', key, PLACES, '+inf')
end

-- Begins the time of grace if the key is absent, for operations that expect their tickets in it.
local function begin_anew()
  if call('EXISTS', key) == 0 then
    call('ZADD', key, -(now + GRACE_SPAN), GRACE)
  end
end

local function is_barred()
  return score_of(GRACE) < 0
end

-- Grants free permits to the oldest tickets and announces them to their processes. Tickets of a dead process leave the queue.
-- If a process dies before it learns of a permit, the permit is free again after the claim, which is shorter than a lease.
local function serve()
  local left = is_barred() and 0 or free()
  while left > 0 do
    local ticket = call('ZRANGEBYSCORE', key, 1, format('(%.0f', PLACES), 'LIMIT', 0, 1)[1]
    if not ticket then
      return
    end
    local owner = match(ticket, '^[^:]*')
    if score_of(owner) < 0 then
      enter(ticket, claim)
      call('PUBLISH', channel .. owner, ticket)
      left = left - 1
    else
      call('ZREM', key, ticket)
    end
  end
end

local answer = ''
if op == RENEW then
  -- Before the queue is served: a holder whose permit was lost has precedence.
  begin_anew()
  for ticket in words do
    local known = score_of(ticket) >= PLACES or free() > 0
    if known then
      enter(ticket, lease)
    end
    answer = answer .. (known and INSIDE or UNKNOWN)
  end
elseif op == LEAVE then
  for ticket in words do
    call('ZREM', key, ticket)
  end
elseif wait > 0 then
  if op == LOOK then
    begin_anew()
  end
  call('ZADD', key, -(now + alive), process)
end

serve()

if op == TAKE or op == LOOK then
  for ticket in words do
    local score = score_of(ticket)
    local state = score >= PLACES and INSIDE or score > 0 and IN_LINE or UNKNOWN
    if op == TAKE and state == UNKNOWN then
      if free() > 0 and not is_barred() then
        state = INSIDE
      elseif wait > 0 then
        local newest = call('ZREVRANGEBYSCORE', key, format('(%.0f', PLACES), 1, 'WITHSCORES', 'LIMIT', 0, 1)
        call('ZADD', key, (newest[2] or 0) + 1, ticket)
        state = IN_LINE
      end
    end
    if state == INSIDE then
      enter(ticket, lease)
    end
    answer = answer .. state
  end
end

-- No member matters longer than a lease or the life of a process; with a clock other than TIME, an hour more.
local needed = (lease + alive) / 1000 + (clock < 0 and 1000 or 3600000)
if call('PTTL', key) < needed then
  call('PEXPIRE', key, format('%.0f', needed))
end
return answer
