// The conversation by the official SDK for TypeScript 2.x.
//
// usage: typescript_sdk2.mjs URL|stdio:PROGRAM auto|legacy
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { converse, programOf, say } from "./conversation.mjs";

const [, , url, mode] = process.argv;
const overHttp = !programOf(url);
const transport = overHttp
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport(programOf(url));
const client = new Client(
  { name: "typescript-2", version: "1" },
  { versionNegotiation: { mode } },
);

client.onerror = (error) => console.error(error);
await client.connect(transport);
say({ protocol: client.getNegotiatedProtocolVersion() });
await converse(client);
client.onerror = undefined; // ending the idle stream is told as one
if (overHttp && mode === "legacy") await transport.terminateSession();
await client.close();
