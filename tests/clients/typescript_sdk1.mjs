// The conversation by the official SDK for TypeScript 1.x.
//
// usage: typescript_sdk1.mjs URL|sse:URL|ws:URL|stdio:PROGRAM
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import { converse, programOf, say } from "./conversation.mjs";

function transportTo(url) {
  if (programOf(url)) return new StdioClientTransport(programOf(url));
  if (url.startsWith("sse:")) return new SSEClientTransport(new URL(url.slice(4)));
  if (url.startsWith("ws")) return new WebSocketClientTransport(new URL(url));
  return new StreamableHTTPClientTransport(new URL(url));
}

const transport = transportTo(process.argv[2]);
const client = new Client({ name: "typescript-1", version: "1" });
// Of this transport only; the others do not keep it.
const overHttp = transport instanceof StreamableHTTPClientTransport;

client.onerror = (error) => console.error(error);
await client.connect(transport);
if (overHttp) say({ protocol: transport.protocolVersion });
await converse(client);
client.onerror = undefined; // ending the idle stream is told as one
if (overHttp) await transport.terminateSession();
await client.close();
