-- The records of operators about single keys, in one hash, as texts that every process reads. It is no algorithm and is sent as
-- it is. Fields: 'v' the version of the latest write, 'n' the number of writes, 'x' the last end of a record; 'l' and a number
-- below 1000: version and id of one of the newest writes; 'r' and an id: version, end, text; 'a' and an id: when the record last
-- applied; 'c' and a group, which is the id up to its line break: the number of its records; 'e' and a group: none of it ends before.
-- ARGV[1] is packed: clock (-1: TIME), the version that the caller knows, end of the record or 0, its life, the most of its group
-- (0: read), bytes of the id; then id and text, of a read the ids of records that have applied, with NULs between them.
-- Replies with version, clock, 1 if all records follow; of each version, end, when it applied, bytes of id and text, these two.
-- Instants are microseconds. An empty reply: the group is full.

local call, pack, unpack, sub, max = redis.call, struct.pack, struct.unpack, string.sub, math.max
local LOG = 1000

local key = KEYS[1]
local clock, since, ending, life, most, length, rest = unpack('<dddddd', ARGV[1])
local now = clock
if clock < 0 then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- A key of another type is taken as an empty one.
local kept = redis.pcall('HMGET', key, 'v', 'n', 'x')
if kept.err and not string.find(kept.err, 'WRONGTYPE', 1, true) then
  return kept
end
if kept.err and most == 0 then
  return pack('<ddd', 0, now, 1)
elseif kept.err then
  -- A server without memory refuses SET, and not DEL.
  call('SET', key, '')
  call('DEL', key)
end
local version, writes, last = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0, tonumber(kept[3]) or 0

local function whole(number)
  return string.format('%.0f', number)
end

-- Removes the records of a group that have ended. Returns how many are left, and when the first of them ends.
local function swept(group, size)
  local first, prefix, all = 2 ^ 53, 'r' .. group .. '\n', call('HGETALL', key)
  call('HSET', key, 'n', whole(writes))
  for i = 1, #all, 2 do
    if sub(all[i], 1, #prefix) == prefix then
      local _, ends = unpack('<dd', all[i + 1])
      if ends <= now then
        call('HDEL', key, all[i], 'a' .. sub(all[i], 2))
        size = size - 1
      else
        first = math.min(first, ends)
      end
    end
  end
  call('HSET', key, 'c' .. group, whole(size), 'e' .. group, whole(first))
  return size, first
end

if most > 0 then
  local id, text = sub(ARGV[1], rest, rest + length - 1), sub(ARGV[1], rest + length)
  local group = string.match(id, '^[^\n]*')
  local of = call('HMGET', key, 'r' .. id, 'c' .. group, 'e' .. group)
  local size, first = tonumber(of[2]) or 0, tonumber(of[3]) or 2 ^ 53
  if text ~= '' and not of[1] and size >= most and first <= now then
    size, first = swept(group, size)
  end
  if text ~= '' and not of[1] and size >= most then
    return ''
  end
  if text ~= '' or of[1] then
    version, writes = max(version + 1, now), writes + 1
    call('HSET', key, 'v', whole(version), 'n', whole(writes), 'l' .. writes % LOG, pack('<d', version) .. id)
    call('HDEL', key, 'r' .. id, 'a' .. id)
    size = size - (of[1] and 1 or 0) + (text ~= '' and 1 or 0)
    if text ~= '' then
      ending = ending > 0 and ending or now + life
      last = max(last, ending)
      call('HSET', key, 'r' .. id, pack('<dd', version, ending) .. text, 'e' .. group, whole(math.min(first, ending)))
    end
    call('HSET', key, 'x', whole(last), 'c' .. group, whole(size))
    -- An hour longer than its last record, as another clock than TIME may have set the end.
    call('PEXPIRE', key, whole(max(last - now, 0) / 1000 + 3600000))
  end
else
  for id in string.gmatch(sub(ARGV[1], rest), '[^%z]+') do
    if call('HMGET', key, 'r' .. id)[1] then
      redis.pcall('HSET', key, 'a' .. id, whole(now))
    end
  end
end

local parts = { pack('<ddd', version, now, 0) }
-- Adds a record to the reply; without a value, one that was removed.
local function add(id, value, applied)
  local at, ends, from = version, 0, 1
  if value then
    at, ends, from = unpack('<dd', value)
  end
  local text = sub(value or '', from)
  parts[#parts + 1] = pack('<ddddd', at, ends, tonumber(applied) or 0, #id, #text) .. id .. text
end

local changed, is_known, back = {}, since == version, 0
while not is_known and back < writes and back < LOG do
  local entry = call('HMGET', key, 'l' .. (writes - back) % LOG)[1]
  if not entry or #entry < 8 then
    break
  end
  is_known = unpack('<d', entry) == since
  back = back + 1
  if not is_known then
    changed[sub(entry, 9)] = true
  end
end
if is_known then
  for id in pairs(changed) do
    local found = call('HMGET', key, 'r' .. id, 'a' .. id)
    add(id, found[1], found[2])
  end
  return table.concat(parts)
end
parts[1] = pack('<ddd', version, now, 1)
local all, applied = call('HGETALL', key), {}
for i = 1, #all, 2 do
  if sub(all[i], 1, 1) == 'a' then
    applied[sub(all[i], 2)] = all[i + 1]
  end
end
for i = 1, #all, 2 do
  if sub(all[i], 1, 1) == 'r' then
    local id = sub(all[i], 2)
    add(id, all[i + 1], applied[id])
  end
end
return table.concat(parts)
