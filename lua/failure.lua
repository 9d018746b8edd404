-- The reply of a call that failed, for one key of several or one whole of several: ! and the error.
local message = type(reply) == 'table' and reply.err or reply
if string.find(message, 'READONLY', 1, true) then
  -- True of every key of the call, and the error by which clients look for another server.
  return redis.error_reply(message)
end
-- Redis 6.2 puts the line of the script before the message.
reply = '!' .. string.gsub(message, '^@user_script: %d+: %-?', '')
