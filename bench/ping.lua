-- Pings in one session, each with an id of its own: the SDK's server mixes up requests
-- that share one.  Session in PING_SESSION.  Ids have one length, so that a request is
-- made of two ready pieces: wrk must not be what is measured.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
wrk.headers["Mcp-Session-Id"] = os.getenv("PING_SESSION")

local id = 10000000
local head, tail

function init(args)
  local text = wrk.format(nil, nil, nil, '{"jsonrpc":"2.0","id":' .. id .. ',"method":"ping"}')
  local first, last = text:find(tostring(id), 1, true)
  head, tail = text:sub(1, first - 1), text:sub(last + 1)
end

function request()
  id = id + 1
  return head .. id .. tail
end
