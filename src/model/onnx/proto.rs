//! The messages of an ONNX file that are read, as `onnx.proto` has them.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(string, tag = "2")]
    pub producer: String,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub opsets: Vec<Opset>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Opset {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    pub initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub inputs: Vec<Named>,
    #[prost(message, repeated, tag = "12")]
    pub outputs: Vec<Named>,
    #[prost(message, repeated, tag = "16")]
    pub remarks: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub operator: String,
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, tag = "2")]
    pub float: f32,
    #[prost(int64, tag = "3")]
    pub int: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub text: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub tensor: Option<Tensor>,
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub kind: i32,
    #[prost(float, repeated, tag = "4")]
    pub floats: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub int32s: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub int64s: Vec<i64>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "bytes", tag = "9")]
    pub raw: prost::bytes::Bytes,
    #[prost(double, repeated, tag = "10")]
    pub doubles: Vec<f64>,
    #[prost(uint64, repeated, tag = "11")]
    pub uint64s: Vec<u64>,
    #[prost(message, repeated, tag = "13")]
    pub external: Vec<Entry>,
    /// 1 where the numbers are in a file of their own.
    #[prost(int32, tag = "14")]
    pub location: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// An input or output of a graph.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub kind: Option<Type>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Type {
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    #[prost(int32, tag = "1")]
    pub kind: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Shape>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Shape {
    #[prost(message, repeated, tag = "1")]
    pub dims: Vec<Length>,
}

/// The length of an axis: a number, or a name for one that is open.
#[derive(Clone, PartialEq, Message)]
pub struct Length {
    #[prost(int64, tag = "1")]
    pub value: i64,
    #[prost(string, tag = "2")]
    pub name: String,
}
