-- The records of operators about single keys, in one hash, as texts that every process reads. It is no algorithm and is sent as
-- it is. Fields: 'v' the version of the latest write, 'n' the number of writes, 'l' and a number below 1000: one of the newest
-- writes; 'r' and an id: the record; 'c' and a group, which is the id up to its line break: the number of its records.
-- A record is, also in the reply: version, end, when it last applied, bytes of id and text, these two; without text it was removed.
-- ARGV[1] is packed: clock (-1: TIME), the version that the caller knows, end of the record or 0, its life, the most of its group
-- (0: read), bytes of the id; then id and text, of a read the ids of records that have applied or ended, with NULs between them.
-- A read of a further page brings its cursor in place of the end.
-- Replies with version, clock and -1; the changes since the version of the caller, the newest first. If the log does not have it:
-- the cursor of the next page (0: none is left) and the records of a page. Instants are microseconds. An empty reply: the group is full.

local call, pack, unpack, sub, max = redis.call, struct.pack, struct.unpack, string.sub, math.max
local LOG = 1000
-- Fields that are looked at for a page, of which Redis may return some more.
local PAGE = 200
-- No record lasts longer than 365 days; an hour more, as another clock than TIME may have set the end.
local LIFE_MS = 31539600000

local key = KEYS[1]
local clock, since, ending, life, most, length, rest = unpack('<dddddd', ARGV[1])
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- A key of another type is taken as an empty one.
local kept = redis.pcall('HMGET', key, 'v', 'n')
if kept.err and not string.find(kept.err, 'WRONGTYPE', 1, true) then
  return kept
end
if kept.err and most == 0 then
  return pack('<ddd', 0, now, 0)
elseif kept.err then
  -- A server without memory refuses SET, and not DEL.
  call('SET', key, '')
  call('DEL', key)
end
local version, writes = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0

local function whole(number)
  return string.format('%.0f', number)
end

-- Looks up a record (what an operator has set for one key) by its id. Returns the record, if it is there, the name of the field that
-- counts the records of its group, and that count. The group is the first line of the id: the kind of record and the limiter.
local function look_up(id)
  local group = 'c' .. string.match(id, '^[^\n]*')
  local found = call('HMGET', key, 'r' .. id, group)
  return found[1], group, tonumber(found[2]) or 0
end

if most > 0 then
  local id, text = sub(ARGV[1], rest, rest + length - 1), sub(ARGV[1], rest + length)
  local before, group, size = look_up(id)
  if text ~= '' and not before and size >= most then
    return ''
  end
  -- A removal also of nothing: a process may still know a record that was dropped at its end, if the clock was set back since.
  version, writes = max(version + 1, now), writes + 1
  size = size + (text ~= '' and 1 or 0) - (before and 1 or 0)
  ending = ending > 0 and ending or now + life
  local record = pack('<ddddd', version, ending, 0, #id, #text) .. id .. text
  call('HSET', key, 'v', whole(version), 'n', whole(writes), group, whole(size), 'l' .. writes % LOG, record, 'r' .. id, record)
  if text == '' then
    call('HDEL', key, 'r' .. id)
  end
  call('PEXPIRE', key, whole(LIFE_MS))
else
  for id in string.gmatch(sub(ARGV[1], rest), '[^%z]+') do
    local record, group, size = look_up(id)
    local from, ends = unpack('<dd', record or pack('<dd', 0, 0))
    -- A server without memory notes nothing.
    if record and ends > now then
      redis.pcall('HSET', key, 'r' .. id, pack('<ddd', from, ends, now) .. sub(record, 25))
    elseif record and not (type(redis.pcall('HSET', key, group, whole(size - 1))) == 'table') then
      call('HDEL', key, 'r' .. id)
    end
  end
end

local page = most == 0 and ending or 0
local parts, is_known = { '' }, page == 0 and since == version
for write = writes, page > 0 and writes + 1 or max(writes - LOG + 1, 1), -1 do
  if is_known then
    break
  end
  local record = call('HMGET', key, 'l' .. write % LOG)[1] or pack('<d', -1)
  is_known = unpack('<d', record) == since
  if not is_known then
    parts[#parts + 1] = record
  end
end
local cursor = -1
if not is_known then
  local found = call('HSCAN', key, whole(page), 'MATCH', 'r*', 'COUNT', PAGE)
  cursor, parts = tonumber(found[1]), { '' }
  for i = 2, #found[2], 2 do
    if #found[2][i] >= 40 then
      parts[#parts + 1] = found[2][i]
    end
  end
end
parts[1] = pack('<ddd', version, now, cursor)
return table.concat(parts)
