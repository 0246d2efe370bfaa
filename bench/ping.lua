-- Pings in one session, each with an id of its own: the SDK's server mixes up requests
-- that share one.  Session in PING_SESSION.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
wrk.headers["Mcp-Session-Id"] = os.getenv("PING_SESSION")

local id = 0

function request()
  id = id + 1
  return wrk.format(nil, nil, nil, '{"jsonrpc":"2.0","id":' .. id .. ',"method":"ping"}')
end
