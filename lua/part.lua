-- The functions for one list of policies in the script for calls on several keys (together.lua).

lists[@{number}] = {
  -- Returns a function that decides plain calls with the numbers of an argument: it puts remaining and resetAt behind kept,
  -- and returns the bytes to write and, where there is a ring, a function that writes its slots. Nothing where the call is
  -- not plain.
  plain = @{is_plain} and function(argument)
    local cost, nonce, @{all_numbers} = unpack('<dd@{number_formats}', argument)
    return function(key, fixed)
      local latest
      --@for any slotted local rep, sub = string.rep, string.sub
      fixed = fixed or @{load}
      @{hot_several}
    end
  end,
  -- Runs one operation of the engine, and returns its reply.
  run = function(key, argument)
    local fixed, latest, replaced = @{load}
    --@for any slotted local rep, sub = string.rep, string.sub
    @{modules}
    @{part_function}
    local @{call}
    @{argument}
    @{decision}
  end,
}
