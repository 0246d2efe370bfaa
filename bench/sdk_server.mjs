// SPDX-License-Identifier: MIT
// An MCP server as the SDK's own examples set one up (express, stateful streamable HTTP).
// usage: sdk_server.mjs json|sse   Answers as plain JSON or, as the SDK does by itself, as an
// event stream.  Prints its port and its process id.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';

// The packages of tests/clients/package.json, so that there is one copy of them.
const need = createRequire(new URL('../tests/clients/', import.meta.url));
const { createMcpExpressApp } = need('@modelcontextprotocol/sdk/server/express.js');
const { McpServer } = need('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = need('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { isInitializeRequest } = need('@modelcontextprotocol/sdk/types.js');

const enableJsonResponse = process.argv[2] === 'json';
const transports = {};

async function begin() {
    const transport = new StreamableHTTPServerTransport({
        enableJsonResponse,
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => {
            transports[id] = transport;
        },
    });
    const server = new McpServer({ name: 'peer', version: '1' });
    server.registerTool('nothing', { description: 'Does nothing.' }, () => ({ content: [] }));
    await server.connect(transport);
    return transport;
}

async function handle(req, res) {
    let transport = transports[req.headers['mcp-session-id']];
    if (!transport && req.method === 'POST' && isInitializeRequest(req.body)) transport = await begin();
    if (!transport) return res.status(400).send('no session');
    return transport.handleRequest(req, res, req.body);
}

const app = createMcpExpressApp();
app.post('/mcp', handle);
app.get('/mcp', handle);
const listener = app.listen(0, '127.0.0.1', () => console.log(listener.address().port, process.pid));
