// The conversation by the official SDK for TypeScript 1.x.
//
// usage: typescript_sdk1.mjs URL
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { converse, say } from "./conversation.mjs";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client({ name: "typescript-1", version: "1" });

client.onerror = (error) => console.error(error);
await client.connect(transport);
say({ protocol: transport.protocolVersion });
await converse(client);
client.onerror = undefined; // ending the idle stream is told as one
await transport.terminateSession();
await client.close();
