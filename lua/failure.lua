-- Makes `reply` of a call that failed: an exclamation mark and the error's text. It stands for one key of several, or for one
-- whole (a call that charges all of its keys or none) of several, and leaves the others their answers.
local message = type(reply) == 'table' and reply.err or reply
if string.find(message, 'READONLY', 1, true) then
  -- True of every key of the call, and the error by which clients look for another server.
  return redis.error_reply(message)
end
-- Redis 6.2 puts the line of the script before the message.
reply = '!' .. string.gsub(message, '^@user_script: %d+: %-?', '')
