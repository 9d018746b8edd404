-- The permits of a semaphore, and the queue of tickets that wait for one. Runs one step on one sorted set. It is no
-- algorithm and is sent as it is. A member's score says what the member is; instants are microseconds:
--   below 0                a semaphore of a process, alive until -score
--   above 0, below 1       'limit:semaphore': the limit that it named last, divided by LIMITS; gone with the semaphore
--   from 1, below PERMITS  a ticket in the queue, the oldest first
--   from PERMITS on        a ticket that holds a permit until score - PERMITS
-- ARGV[1] is packed: step, limit, lease, claim, alive, grace, clock (-1: TIME); then lines of text: the prefix of the
-- channel, the semaphore, tickets. A ticket is 'semaphore:number'. The reply is a digit for each ticket.

local call, format, gmatch, match, sub = redis.call, string.format, string.gmatch, string.match, string.sub
local TAKE, WAIT, POLL, RENEW, RELEASE = 0, 1, 2, 3, 4
local UNKNOWN, WAITING, HELD = '0', '1', '2'
local LIMITS, PERMITS = 1048576, 1099511627776
-- No lease is longer than an hour: a permit that says so was granted before the clock was set back, and is lost.
local FAR = 3600000000
-- After a loss of data, or of permits, none are granted but to holders that renew theirs. This member, with the score of a
-- semaphore, marks that time.
local GRACE = 'grace'

local key = KEYS[1]
local step, limit, lease, claim, alive, grace, clock, rest = struct.unpack('<ddddddd', ARGV[1])
if not (limit >= 1 and limit <= 1000000 and lease >= 0 and lease <= FAR and claim >= 0 and claim <= FAR) then
  return redis.error_reply('ERR limit or lease is out of bounds')
end
local words = gmatch(sub(ARGV[1], rest), '[^\n]+')
local channel, semaphore = words(), words()
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end
local tickets = {}
for ticket in words do
  tickets[#tickets + 1] = ticket
end

-- Ask for memory: the server looks at the first write of a script alone, and this one changes nothing. Without memory what is
-- there may be moved and removed, and nothing is added.
local asked = redis.pcall('ZADD', key, 'XX', 0, '')
local full = type(asked) == 'table' and match(asked.err, 'OOM')
-- Remove what has expired: permits that were not renewed, semaphores that did not poll. A key of another type is discarded, as a
-- server without memory says by its second command alone.
if type(redis.pcall('ZREMRANGEBYSCORE', key, PERMITS, PERMITS + now)) == 'table' then
  call('DEL', key)
end
local lost = call('ZREMRANGEBYSCORE', key, format('(%.0f', PERMITS + now + FAR), '+inf') > 0
-- No semaphore is alive for longer than from now on, and no time of grace lasts longer: one that says so was written before the
-- clock was set back. It would keep its tickets in the queue, or all tickets from their permits, until the clock has caught up.
for _, ahead in ipairs(call('ZRANGEBYSCORE', key, '-inf', format('(%.0f', -now - alive))) do
  call('ZADD', key, -now - alive, ahead)
end
for _, dead in ipairs(call('ZRANGEBYSCORE', key, -now, 0)) do
  call('ZREM', key, dead, 'limit:' .. dead)
end

-- Returns the score of a member of the sorted set, and 0 if there is no such member. The score says what the member is: a
-- semaphore, its limit, a ticket in the queue, or a ticket that holds a permit (see the head of this file).
local function score_of(member)
  return tonumber(call('ZSCORE', key, member) or 0)
end

-- Gives a ticket a permit that ends span microseconds from now, or moves the end of the permit that it has. Its score becomes the
-- end plus PERMITS, which tells permits from tickets in the queue.
local function hold(ticket, span)
  call('ZADD', key, PERMITS + now + span, ticket)
end

-- Returns the number of tickets that hold a permit now. Permits that have ended were removed when the call began.
local function count_held()
  return call('ZCOUNT', key, PERMITS, '+inf')
end

local is_taking = step == TAKE or step == WAIT
local is_absent = (step == POLL or step == RENEW) and call('EXISTS', key) == 0
if full and (is_absent or step == WAIT) then
  return asked
end
-- Begins the time of grace if the key is absent, for steps that expect their tickets in it, and if permits were removed whose
-- holders may live.
if is_absent or lost then
  call('ZADD', key, -(now + grace), GRACE)
end
local is_grace = score_of(GRACE) < 0

-- Grants permits to the tickets in the queue, oldest first, and publishes each grant on the channel of the ticket's semaphore.
-- One sorted set has limits and tickets, told apart by their scores: between 0 and 1 the limit of a semaphore, divided by LIMITS;
-- from 1 on a ticket in the queue; from PERMITS on a ticket that holds a permit. A ticket gets a permit while fewer permits are held,
-- by all semaphores together, than the limit of its own semaphore. The first ticket that gets none ends the round: those behind it
-- could otherwise pass it for ever. A ticket leaves the queue if its semaphore has no limit any more, as it has stopped polling.
-- Once `widest` permits are held, the largest of all limits, no ticket can get one; the limit of this call counts too if it takes a
-- permit. A new permit lasts for `claim`, in which its semaphore has to notice it.
local function serve()
  local widest = tonumber(call('ZREVRANGEBYSCORE', key, '(1', '(0', 'WITHSCORES', 'LIMIT', 0, 1)[2] or 0) * LIMITS
  if is_taking and limit > widest then
    widest = limit
  end
  local held = count_held()
  while held < widest do
    local ticket = call('ZRANGEBYSCORE', key, 1, format('(%.0f', PERMITS), 'LIMIT', 0, 1)[1]
    if not ticket then
      return
    end
    local owner = match(ticket, '^[^:]*')
    local own = score_of('limit:' .. owner) * LIMITS
    if own == 0 then
      call('ZREM', key, ticket)
    elseif held >= own then
      return
    else
      hold(ticket, claim)
      call('PUBLISH', channel .. owner, ticket)
      held = held + 1
    end
  end
end

if step == WAIT or step == POLL then
  call('ZADD', key, -(now + alive), semaphore, limit / LIMITS, 'limit:' .. semaphore)
end
for _, ticket in ipairs(tickets) do
  if step == RELEASE then
    call('ZREM', key, ticket)
  elseif step == RENEW and score_of(ticket) < PERMITS and count_held() < limit then
    -- Before the queue is served: a holder whose permit was lost has precedence.
    hold(ticket, lease)
  end
end
if not is_grace then
  serve()
end

local answer = ''
for _, ticket in ipairs(tickets) do
  local score = score_of(ticket)
  local state = score >= PERMITS and HELD or score > 0 and WAITING or UNKNOWN
  if is_taking and state == UNKNOWN then
    local newest = call('ZREVRANGEBYSCORE', key, format('(%.0f', PERMITS), 1, 'WITHSCORES', 'LIMIT', 0, 1)
    if not is_grace and not newest[1] and count_held() < limit then
      state = HELD
    elseif step == WAIT then
      call('ZADD', key, (newest[2] or 0) + 1, ticket)
      state = WAITING
    end
  end
  if state == HELD then
    if full and score == 0 then
      return asked
    end
    hold(ticket, lease)
  end
  answer = answer .. state
end

-- No member matters longer than a lease, a claim or the life of a semaphore; with a clock other than TIME, an hour more.
local needed = (lease + claim + alive) / 1000 + (clock < 0 and 1000 or 3600000)
if call('PTTL', key) < needed then
  call('PEXPIRE', key, format('%.0f', needed))
end
return answer
