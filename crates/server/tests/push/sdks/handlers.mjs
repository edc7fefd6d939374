// Handlers as an application has them, each written with the official SDK of its provider. They
// know nothing of Oncebox but the header by which they say what they took.

import { createServer } from 'node:http';

import { createNodeMiddleware, Webhooks } from '@octokit/webhooks';
import '@shopify/shopify-api/adapters/node';
import { ApiVersion, shopifyApi } from '@shopify/shopify-api';
import bolt from '@slack/bolt';
import Stripe from 'stripe';
import { Webhook } from 'svix';
import twilio from 'twilio';

const { env } = process;

const stripe = new Stripe('sk_test_unused');

const shopify = shopifyApi({
  apiKey: 'unused',
  apiSecretKey: env.SHOPIFY_SECRET,
  apiVersion: Object.values(ApiVersion)[0],
  hostName: 'app.example.com',
  isEmbeddedApp: false,
});

const github = new Webhooks({ secret: env.GITHUB_SECRET, log: { ...console, error() {} } });
const githubMiddleware = createNodeMiddleware(github, { path: '/github' });

// What each takes, by the id that its provider gave it; what it does not take, it throws.
const handlers = {
  stripe({ body, headers }) {
    return stripe.webhooks.constructEvent(body, headers['stripe-signature'], env.STRIPE_SECRET).id;
  },
  async shopify({ body, request, response }) {
    const rawBody = body.toString();
    const check = await shopify.webhooks.validate({
      rawBody,
      rawRequest: request,
      rawResponse: response,
    });
    if (!check.valid) throw new Error(check.reason);
    return check.webhookId;
  },
  slack({ body, headers }) {
    const signingSecret = env.SLACK_SECRET;
    bolt.verifySlackRequest({ signingSecret, body: body.toString(), headers });
    return JSON.parse(body).event_id;
  },
  svix({ body, headers }) {
    new Webhook(env.SVIX_SECRET).verify(body, headers);
    return headers['svix-id'];
  },
  twilio({ body, headers }) {
    const params = Object.fromEntries(new URLSearchParams(body.toString()));
    const signature = headers['x-twilio-signature'];
    const valid = twilio.validateRequest(env.TWILIO_SECRET, signature, env.TWILIO_URL, params);
    if (!valid) throw new Error('invalid signature');
    return params.MessageSid ?? params.CallSid;
  },
};

async function handle(request, response) {
  const name = new URL(request.url, 'http://localhost').pathname.slice(1);
  if (name === 'github') {
    response.setHeader('oncebox-summary', `github took ${request.headers['x-github-delivery']}`);
    await githubMiddleware(request, response);
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  try {
    const id = await handlers[name]({ body, headers: request.headers, request, response });
    response.setHeader('oncebox-summary', `${name} took ${id}`);
    response.writeHead(200).end();
  } catch (error) {
    response.writeHead(400).end(`${name}: ${error.message}`);
  }
}

const server = createServer(handle);
server.listen(Number(env.PORT), '127.0.0.1', () => console.log('listening'));
