# An image that does the demo: a sample log, the shipped policies over it, the page of the run in /data/report. And one of
# what runs beside a cluster, without Java and Spark: lookup serve, collect, plan and apply. configs/deploy starts it.
#
#   docker build -t pulsar-lookup .
#   docker run --rm -v lookup-data:/data pulsar-lookup
#   docker run --rm -v "$PWD":/data pulsar-lookup lookup evaluate evaluation.toml --output report
#   docker build -t pulsar-lookup:live --target live .
FROM python:3.12-slim-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels '/source[report,spark]'

FROM python:3.12-slim-bookworm AS live
RUN --mount=type=bind,target=/source,rw pip install --no-cache-dir '/source[collect,report,serve,topics]'
RUN useradd --uid 10001 --create-home lookup && install --directory --owner lookup --group lookup /data
# As a number, which Kubernetes can check not to be root.
USER 10001
WORKDIR /data
CMD ["lookup", "serve", "/etc/lookup/serve.toml"]

FROM python:3.12-slim-bookworm
# Spark 4 needs Java 17, and `ps` in its scripts.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'pulsar-lookup[report,spark]'
RUN useradd --uid 10001 --create-home lookup && install --directory --owner lookup --group lookup /data
# As a number, which Kubernetes can check not to be root.
USER 10001
WORKDIR /data
CMD ["sh", "-ec", "[ -e sample ] || lookup generate --output sample; lookup evaluate shipped:evaluation --output report --force --set inputs.lookups=sample/lookups --set inputs.brokers=sample/brokers --set inputs.loads=sample/loads --set inputs.ownership=sample/ownership"]
