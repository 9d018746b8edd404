if #KEYS == 1 then
  local @{call}
  @{argument}
  @{decision}
end
