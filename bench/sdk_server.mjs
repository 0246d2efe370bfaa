// SPDX-License-Identifier: MIT
// An MCP server by the TypeScript SDK on plain node:http, with sessions, as its README sets
// one up.  usage: sdk_server.mjs json|sse   Answers as plain JSON or, as the SDK does by
// itself, as an event stream.  Prints its port and its process id.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { McpServer } from '@modelcontextprotocol/server';

const enableJsonResponse = process.argv[2] === 'json';
const transports = {};

async function begin() {
    const transport = new NodeStreamableHTTPServerTransport({
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

const listener = createServer(async (req, res) => {
    const session = req.headers['mcp-session-id'];
    await (transports[session] ?? (await begin())).handleRequest(req, res);
}).listen(0, '127.0.0.1', () => console.log(listener.address().port, process.pid));
