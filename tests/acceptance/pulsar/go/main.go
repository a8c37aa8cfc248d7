// Command main runs Go clients of Pulsar that are steered by commands, one JSON object per line of standard input; each is
// answered by one line of standard output with the command's id, and error if it failed. Commands run side by side. It ends
// with standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

type command struct {
	ID           int               `json:"id"`
	Do           string            `json:"do"`
	Client       string            `json:"client"`
	URL          string            `json:"url"`
	Properties   map[string]string `json:"properties"`
	Topic        string            `json:"topic"`
	Subscription string            `json:"subscription"`
	Text         string            `json:"text"`
	TimeoutMS    int               `json:"timeout_ms"`
}

type answer struct {
	ID        int    `json:"id"`
	TS        int64  `json:"ts"`
	TookUS    int64  `json:"took_us"`
	Error     string `json:"error,omitempty"`
	BrokerURL string `json:"broker_url,omitempty"`
	Text      string `json:"text,omitempty"`
}

// client is a client with what it opened, by topic.
type client struct {
	pulsar.Client
	answers   *lookupAnswers
	lock      sync.Mutex
	producers map[string]pulsar.Producer
	consumers map[string]pulsar.Consumer
}

// lookupAnswers reads a client's log, the only place where it says what brokers answered, and hands warnings on to standard error.
type lookupAnswers struct {
	slog.Handler
	brokers *sync.Map
}

var answered = regexp.MustCompile(`^Successfully looked up topic\{(\S+)\} on broker\. (\S+) /`)

func (answers *lookupAnswers) Enabled(context.Context, slog.Level) bool {
	return true
}

func (answers *lookupAnswers) Handle(ctx context.Context, record slog.Record) error {
	if match := answered.FindStringSubmatch(record.Message); match != nil {
		answers.brokers.Store(match[1], match[2])
	}
	if record.Level < slog.LevelWarn {
		return nil
	}
	return answers.Handler.Handle(ctx, record)
}

func (answers *lookupAnswers) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &lookupAnswers{answers.Handler.WithAttrs(attributes), answers.brokers}
}

func main() {
	var clients sync.Map
	var output sync.Mutex
	commands := bufio.NewScanner(os.Stdin)
	commands.Buffer(nil, 1<<24)
	for commands.Scan() {
		var asked command
		if err := json.Unmarshal(commands.Bytes(), &asked); err != nil {
			fmt.Fprintf(os.Stderr, "not a command: %v\n", err)
			os.Exit(2)
		}
		go func() {
			began := time.Now()
			given := answer{ID: asked.ID, TS: began.UnixMicro()}
			if err := carryOut(&clients, &asked, &given); err != nil {
				given.Error = err.Error()
			}
			given.TookUS = time.Since(began).Microseconds()
			line, _ := json.Marshal(given) // numbers and texts alone: nothing in it can fail
			output.Lock()
			defer output.Unlock()
			fmt.Println(string(line))
		}()
	}
}

func carryOut(clients *sync.Map, asked *command, given *answer) error {
	if asked.Do == "open" {
		opened, err := open(asked)
		if err == nil {
			clients.Store(asked.Client, opened)
		}
		return err
	}
	known, ok := clients.Load(asked.Client)
	if !ok {
		return fmt.Errorf("no client named %s", asked.Client)
	}
	client := known.(*client)
	defer func() {
		if broker, ok := client.answers.brokers.Load(asked.Topic); ok {
			given.BrokerURL = broker.(string)
		}
	}()
	switch asked.Do {
	case "lookup":
		// The library looks topics up for producers and consumers only.
		client.answers.brokers.Delete(asked.Topic)
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: asked.Topic})
		if err == nil {
			producer.Close()
		}
		return err
	case "send":
		producer, err := client.producer(asked.Topic)
		if err == nil {
			_, err = producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: []byte(asked.Text)})
		}
		return err
	case "subscribe":
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{Topic: asked.Topic, SubscriptionName: asked.Subscription})
		if err == nil {
			client.lock.Lock()
			defer client.lock.Unlock()
			client.consumers[asked.Topic] = consumer
		}
		return err
	case "receive":
		client.lock.Lock()
		consumer := client.consumers[asked.Topic]
		client.lock.Unlock()
		if consumer == nil {
			return fmt.Errorf("client %s has not subscribed %s", asked.Client, asked.Topic)
		}
		limit, cancel := context.WithTimeout(context.Background(), time.Duration(asked.TimeoutMS)*time.Millisecond)
		defer cancel()
		message, err := consumer.Receive(limit)
		if err != nil {
			return err
		}
		given.Text = string(message.Payload())
		return consumer.Ack(message)
	case "close":
		clients.Delete(asked.Client)
		client.Close()
		return nil
	}
	return fmt.Errorf("no command %q; known: open, lookup, send, subscribe, receive, close", asked.Do)
}

func open(asked *command) (*client, error) {
	answers := &lookupAnswers{slog.NewTextHandler(os.Stderr, nil), &sync.Map{}}
	opened, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:              asked.URL,
		LookupProperties: asked.Properties,
		Logger:           log.NewLoggerWithSlog(slog.New(answers)),
	})
	if err != nil {
		return nil, err
	}
	return &client{
		Client: opened, answers: answers, producers: map[string]pulsar.Producer{}, consumers: map[string]pulsar.Consumer{},
	}, nil
}

func (client *client) producer(topic string) (pulsar.Producer, error) {
	client.lock.Lock()
	defer client.lock.Unlock()
	if producer, ok := client.producers[topic]; ok {
		return producer, nil
	}
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err == nil {
		client.producers[topic] = producer
	}
	return producer, err
}
