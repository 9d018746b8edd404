if alone then
  local @{call}
  @{argument}
  @{decision}
end
